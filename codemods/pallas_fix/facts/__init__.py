"""What a module says about Pallas: names, constants, launches, refs and where they go."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from pallas_fix.edits import Span
from pallas_fix.facts.allocations import Allocations
from pallas_fix.facts.backends import Backends
from pallas_fix.facts.comments import comments
from pallas_fix.facts.constants import Constants
from pallas_fix.facts.flow import TooLarge, Walker
from pallas_fix.facts.guards import Guards
from pallas_fix.facts.index import Index
from pallas_fix.facts.launches import Launch, Launches
from pallas_fix.facts.names import Function, Names
from pallas_fix.facts.positions import Positions
from pallas_fix.facts.values import Trace

_PALLAS = frozenset({"pl", "pltpu", "plgpu"})
_MAKERS = frozenset({"jax.empty_ref", "jax.new_ref"})


class Facts:
    """The facts of one module; what is costly is worked out when first asked for."""

    def __init__(self, text: str, path: str, tree: ast.Module) -> None:
        self.text = text
        self.path = path
        self.tree = tree
        self.names = Names(tree)
        self.constants = Constants(self.names)
        self.allocations = Allocations(self.names, self.constants)
        self._positions = Positions(text)

    @classmethod
    def parse(cls, text: str, path: str) -> Facts:
        """Read a module. Raises SyntaxError, ValueError or RecursionError where it cannot."""
        return cls(text, path, ast.parse(text.removeprefix("\ufeff"), path))

    def span(self, node: ast.AST) -> Span:
        """Where a node lies, in characters."""
        return self._positions.span(node)

    def source(self, node: ast.AST) -> str:
        """The text of a node as the file has it."""
        return self._positions.source(self.span(node))

    def comments(self, node: ast.AST, kept: Iterable[Span] = ()) -> Iterator[str]:
        """The comments inside a node that a fix replaces, but for those in the parts `kept`."""
        outer, inner = self.span(node), tuple(kept)
        if "#" not in self.source(node):
            return
        for span, text in comments(self.text):
            if outer.contains(span) and not any(part.contains(span) for part in inner):
                yield text

    def within(self, outer: ast.AST, inner: ast.AST) -> bool:
        """True if `inner` is written inside `outer`, or is it."""
        return self.span(outer).contains(self.span(inner))

    @cached_property
    def _guards(self) -> Guards:
        return Guards(self.names, self.span)

    def is_guarded(self, span: Span) -> bool:
        """True for code in an arm of somebody's test for versions of jax (`facts.guards`)."""
        return self._guards.hold(span)

    @property
    def polyfilled(self) -> frozenset[str]:
        """The canonical names that the file itself assigns onto modules: `pl.load`."""
        return self._guards.polyfilled

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """The launches of the module, in the order in which they stand."""
        found = list(Launches(self.names, self.constants, self.allocations))
        return tuple(sorted(found, key=lambda launch: self.span(launch.call)))

    @cached_property
    def index(self) -> Index:
        """The nodes of the module by what they are called."""
        return self.names.index

    @cached_property
    def backends(self) -> Backends:
        """Which backend each piece of the module is for."""
        return Backends(self.names, self.constants, self.launches)

    @cached_property
    def traces(self) -> tuple[Trace, ...]:
        """A walk through each launch, then one through each function that none of them reached."""
        walker = Walker(self.names, self.constants, self.allocations)
        return tuple(self._walk(walker))

    def _walk(self, walker: Walker) -> Iterator[Trace]:
        for launch in self.launches:
            try:
                trace = walker.launch(launch)
            except TooLarge:
                continue
            if trace is not None:
                yield trace
        for function in self._functions():
            if function in walker.entered or function not in self._speaking:
                continue
            try:
                yield walker.function(function)
            except TooLarge:
                continue

    @cached_property
    def _speaking(self) -> set[Function]:
        """The functions with calls into Pallas in them, which alone are worth a walk."""
        found: set[Function] = set()
        for call in self.names.calls:
            name = self.names.qualified(call.func)
            if name == "functools.partial" and call.args:
                name = self.names.qualified(call.args[0])
            if name is not None and (name in _MAKERS or name.partition(".")[0] in _PALLAS):
                found.update(self.names.enclosing(call))
        return found

    def _functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions of the module and of its classes, outer ones before those inside them."""
        return sorted(self.index.functions, key=lambda f: len(list(self.names.enclosing(f))))
