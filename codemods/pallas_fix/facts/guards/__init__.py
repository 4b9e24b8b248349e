"""Code that is left alone: shims for several versions of jax, and tests that expect an error.

A shim is code that asks what this jax is or has, and has something for either answer. Neither
arm is touched, nor what only runs after the test. What asks (`probes`):

- a version: `__version__`, `__version_info__`, `jax.version`, `importlib.metadata.version("jax")`,
  also Python's, with what is computed of it in constants, attributes, parameters and functions;
- a name: `hasattr` and `getattr` of jax, of a ref or of a module of shims, `dir`, `vars`,
  `__dict__`, `try/except AttributeError`, the import of a name under `try/except ImportError`
  (`optional`), and an `except` of anything around single names (`tries`);
- a keyword: `inspect.signature` of something of jax, `try/except TypeError`;
- a flag, parameter or function that is called after versions (`words`). A flag in capitals of
  another module, of which the name says nothing, counts where its arms use different names or
  keywords of jax (`differences`).

What asks whether there is Pallas at all, which backend there is (`jax.default_backend()`), whether
kernels are interpreted, or what an ordinary flag says (`DEBUG`, `USE_BF16`), is no shim; nor is a
test that raises where jax is too old.

What belongs to a shim elsewhere is left alone, too: short functions that one arm alone names, and
annotations beside it (`helpers`), dicts of keywords that it fills or renames, and the uses of what
it binds, though not the arguments of their calls (`uses`). So are all uses of a name that the file
puts onto a module of jax (`patches`). A test with `pytest.raises` or `pytest.warns` in it keeps
its kernels and its uses of Pallas, one that is skipped for some versions all that it has
(`expected`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property

from pallas_fix.edits import Span
from pallas_fix.facts.guards.arms import Arms
from pallas_fix.facts.guards.choices import Choices
from pallas_fix.facts.guards.expected import Expected
from pallas_fix.facts.guards.helpers import helpers, lazy_annotations
from pallas_fix.facts.guards.objects import Objects
from pallas_fix.facts.guards.patches import Patch, Patches, polyfilled
from pallas_fix.facts.guards.probes import Probes
from pallas_fix.facts.guards.tries import Tries
from pallas_fix.facts.guards.uses import of_chosen, of_dicts, of_polyfills, within
from pallas_fix.facts.names import Names

_SEEN = (
    *(ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Subscript, ast.Match, ast.Try, ast.With),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Call, ast.Expr, ast.Assign),
    *(ast.FunctionDef, ast.ClassDef),
)


class Guards:
    """The code of one module that is left alone."""

    def __init__(self, names: Names, span: Callable[[ast.AST], Span]) -> None:
        self._names = names
        self._span = span

    def hold(self, span: Span) -> bool:
        """True for code at `span` that is left alone."""
        return span in self._exact or any(outer.contains(span) for outer in self._regions)

    @cached_property
    def polyfilled(self) -> frozenset[str]:
        """The canonical names that the file assigns onto modules: `pl.load`."""
        return polyfilled(self._patches)

    @cached_property
    def _patches(self) -> tuple[Patch, ...]:
        return tuple(Patches(self._names, self._objects))

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self._names)

    @cached_property
    def _nodes(self) -> tuple[ast.AST, ...]:
        """What is left alone with all that is in it."""
        found = list(self._find())
        found += helpers(self._names, within(found))
        return (
            *found,
            *lazy_annotations(self._names, found),
            *of_dicts(self._names, within(found)),
        )

    def _find(self) -> Iterator[ast.AST]:
        names, tries = self._names, Tries(self._names)
        probes = Probes(names, self._objects, tries)
        arms, choices = Arms(names, probes, tries), Choices(names, self._objects, probes)
        expected = Expected(names, probes)
        yield from (statement for statement, _ in names.optional)
        for node in names.parent:
            if isinstance(node, _SEEN):
                yield from arms.of(node)
                yield from choices.of(node)
                yield from expected.of(node)
        for patch in self._patches:
            yield patch.node
            if patch.value is not None:
                yield from self._defined(patch.value)

    def _defined(self, value: ast.expr) -> Iterator[ast.AST]:
        """The function or class of the file that is put onto jax."""
        definition = self._names.definition(value)
        if definition is not None:
            yield definition
        elif isinstance(value, ast.Name):
            binding = self._names.binding(value, self._names.scope(value))
            if binding is not None and isinstance(binding.node, ast.ClassDef):
                yield binding.node

    @cached_property
    def _regions(self) -> tuple[Span, ...]:
        # To Python, a function begins after its decorators.
        marks = (mark for node in self._nodes for mark in getattr(node, "decorator_list", ()))
        kept: list[Span] = []
        spans = {self._span(node) for node in (*self._nodes, *marks)}
        for span in sorted(spans, key=lambda s: (s.line, s.column, -s.end_line, -s.end_column)):
            if not (kept and kept[-1].contains(span)):
                kept.append(span)
        return tuple(kept)

    @cached_property
    def _exact(self) -> frozenset[Span]:
        """What is left alone itself, but not the code in it."""
        uses = (
            *of_polyfills(self._names, self.polyfilled),
            *of_chosen(self._names, within(self._nodes)),
        )
        return frozenset(map(self._span, uses))


__all__ = ["Guards"]
