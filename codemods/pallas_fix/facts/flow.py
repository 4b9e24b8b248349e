"""A symbolic walk through kernels: where each ref goes, and in which order.

Calls of functions of the file are followed, loops over known Python ranges are unrolled, and
what runs only under a condition or in a traced loop is kept in a region of its own. Nothing of
jax is run.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_fix.facts.allocations import Allocations, Slot
from pallas_fix.facts.constants import Constants
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function, Names
from pallas_fix.facts.scopes import defaults
from pallas_fix.facts.statements import Statements
from pallas_fix.facts.values import (
    OTHER,
    Callee,
    Event,
    Frame,
    GridTest,
    Items,
    Known,
    Ref,
    Region,
    Table,
    Trace,
)

_DEPTH = 24
_EVENTS = 20_000


class TooLarge(Exception):
    """The walk met more events than it may hold."""


class Walker(Statements):
    """Walks kernels of one module."""

    def __init__(self, names: Names, constants: Constants, allocations: Allocations) -> None:
        self.names = names
        self.constants = constants
        self.allocations = allocations
        self.entered: set[ast.AST] = set()
        self.refs: list[Ref] = []
        self.region = Region("body", names.tree)
        self.functions: tuple[Function, ...] = ()
        self.site: tuple[int, ...] = ()
        self.at: ast.AST | None = None
        self.steps: dict[int, int] = {}
        self._events = 0
        self._frames: dict[Function, Frame] = {}

    def launch(self, launch: Launch) -> Trace | None:
        """Walk the kernel of a launch, or None where the kernel is not in this file."""
        self._begin(launch.call)
        frame = self._outer(launch.call)
        self._begin(launch.call)
        if isinstance(launch.kernel, ast.FunctionDef):
            callee = self._defined(launch.kernel, frame)
        else:
            callee = self.eval(launch.kernel, frame) if launch.kernel is not None else OTHER
        if not isinstance(callee, Callee):
            return None
        grid = self.constants.fold(launch.grid)
        sizes = grid if isinstance(grid, tuple) else (grid,)
        self.steps = {axis: size for axis, size in enumerate(sizes) if isinstance(size, int)}
        scratch = tuple(self.scratch(slot, launch) for slot in launch.scratch or ())
        keyed = [(s.key, r) for s, r in zip(launch.scratch or (), scratch, strict=True) if s.key]
        positional = () if keyed else scratch
        arguments = self._operands(callee, launch, len(positional), {str(k) for k, _ in keyed})
        root = self.region
        self.call(callee, (*arguments, *positional), {str(k): r for k, r in keyed})
        parameters = tuple(_positional(callee, {str(k) for k, _ in keyed}))
        return Trace(root, callee.node, launch, self.refs, parameters)

    def function(self, node: Function) -> Trace:
        """Walk a function that nothing in the file runs; its parameters are refs of any kind."""
        self._begin(node)
        root = self.region
        arguments = [Ref("param", a, name=a.arg) for a in (*node.args.posonlyargs, *node.args.args)]
        self.refs.extend(arguments)
        self.call(
            Callee(node, None), tuple(arguments), {a.arg: OTHER for a in node.args.kwonlyargs}
        )
        return Trace(root, node, None, self.refs)

    def scratch(self, slot: Slot, launch: Launch | None, kind: str = "scratch") -> object:
        """The ref, or the tree of refs, that a slot stands for."""
        if slot.children is not None:
            inner = tuple(self.scratch(child, launch, kind) for child in slot.children)
            if any(child.key for child in slot.children):
                return Table({c.key: r for c, r in zip(slot.children, inner, strict=True)})
            return Items(inner)
        ref = Ref(kind, slot.element, slot.allocation, slot, launch)
        self.refs.append(ref)
        return ref

    def _begin(self, node: ast.AST) -> None:
        self.refs = []
        self.region = Region("body", node)
        self.functions = ()
        self.site = ()
        self.at = None
        self.steps = {}
        self._events = 0

    def _outer(self, node: ast.AST) -> Frame | None:
        """A frame for the function around a node, so that its local functions are found."""
        function = next(self.names.enclosing(node), None)
        if function is None:
            return None
        if function not in self._frames:
            frame = Frame(function, None)
            self._frames[function] = frame
            frame.parent = self._outer(function)
            callers = self.names.callers.get(function, [])
            if len(callers) == 1:
                with _Inside(self, Region("unknown", function)):
                    given = self.arguments(callers[0], self._outer(callers[0]))
                if given is not None:
                    self._bind(function, given.positional, given.keywords, frame)
                    self._forget_constants(function, frame)
        return self._frames[function]

    def _forget_constants(self, function: Function, frame: Frame) -> None:
        """Other files may call a public function with other numbers, if not with other kernels."""
        name = getattr(function, "name", "_")
        nested = not self.names.at_import(function)
        if name.startswith("_") or nested:
            return
        for key, value in frame.variables.items():
            if isinstance(value, Known):
                frame.variables[key] = OTHER

    def _operands(
        self, callee: Callee, launch: Launch, scratch: int, keyed: set[str]
    ) -> tuple[object, ...]:
        arguments = callee.node.args
        names = _positional(callee, keyed)
        names = names[: len(names) - len(callee.scoped)] if callee.scoped else names
        outputs = launch.outputs or 0
        if arguments.vararg is not None:
            fixed = [self._operand(launch, name, None) for name in names]
            tail = [self._operand(launch, "", i) for i in range(outputs)]
            return (*fixed, Items(tuple(tail), open_front=True))
        count = max(0, len(names) - scratch)
        known = launch.outputs is not None and launch.kind != "core_map"
        first = count - outputs
        return tuple(
            self._operand(launch, name, i - first if known and i >= first else None)
            for i, name in enumerate(names[:count])
        )

    def _operand(self, launch: Launch, name: str, output: int | None) -> Ref:
        ref = Ref("operand", launch.call, launch=launch, name=name, output=output)
        self.refs.append(ref)
        return ref

    def emit(self, kind: str, node: ast.AST, ref: Ref | None, **more: object) -> Event:
        """Write an event down."""
        self._events += 1
        if self._events > _EVENTS:
            raise TooLarge
        event = Event(kind, node, ref, functions=self.functions, site=self.site)
        for key, value in more.items():
            setattr(event, key, value)
        self.region.items.append(event)
        return event

    def inside(self, kind: str, node: ast.AST, test: GridTest | None = None) -> _Inside:
        """A context in which events go to a new region."""
        if test is not None and test.step and test.step + 1 == self.steps.get(test.axis):
            test = GridTest(test.axis, "last", test.step)
        return _Inside(self, Region(kind, node, test=test))

    def call(self, callee: Callee, args: Sequence[object], kwargs: dict[str, object]) -> object:
        """Run a function of the file with these arguments."""
        node = callee.node
        if len(self.functions) > _DEPTH or self.functions.count(node) > 1:
            return OTHER
        self.entered.add(node)
        frame = Frame(node, callee.frame)
        values = (*callee.args, *args, *callee.scoped)
        keywords = {**dict(callee.kwargs), **kwargs, **dict(callee.scoped_kwargs)}
        self._bind(node, values, keywords, frame)
        outer, self.functions = self.functions, (*self.functions, node)
        region = Region("body", node, at=self.at)
        try:
            with _Inside(self, region):
                if isinstance(node, ast.Lambda):
                    return self.eval(node.body, frame)
                return self.block(node.body, frame)
        finally:
            self.functions = outer

    def _bind(
        self,
        node: Function,
        values: Sequence[object],
        keywords: dict[str, object],
        frame: Frame,
    ) -> None:
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args]
        rest = list(values)
        front = rest[0] if rest else None
        if isinstance(front, Items) and front.open_front and _takes_all(arguments, keywords):
            # How many values come first is not known; the last ones go to the last parameters.
            tail = [*front.items, *rest[1:]]
            count = sum(p.arg not in keywords for p in named)
            rest = [*[OTHER] * (count - len(tail)), *tail[max(0, len(tail) - count) :]]
        for parameter in named:
            if parameter.arg in keywords:
                frame.variables[parameter.arg] = self._named(keywords[parameter.arg], parameter)
            elif rest and not (isinstance(rest[0], Items) and rest[0].open_front):
                frame.variables[parameter.arg] = self._named(rest.pop(0), parameter)
        for parameter in arguments.kwonlyargs:
            if parameter.arg in keywords:
                frame.variables[parameter.arg] = self._named(keywords[parameter.arg], parameter)
        for parameter, default in defaults(arguments).items():
            if parameter.arg not in frame.variables:
                hidden = "**" in keywords
                value = OTHER if hidden else self.eval(default, frame.parent)
                frame.variables[parameter.arg] = value
        if arguments.vararg is not None:
            front = bool(rest) and isinstance(rest[0], Items) and rest[0].open_front
            head = rest[0].items if front and isinstance(rest[0], Items) else rest[:1]
            frame.variables[arguments.vararg.arg] = Items((*head, *rest[1:]), front)
        if arguments.kwarg is not None:
            known = {p.arg for p in (*named, *arguments.kwonlyargs)}
            spare: dict[object, object] = {k: v for k, v in keywords.items() if k not in known}
            frame.variables[arguments.kwarg.arg] = Table(spare)

    @staticmethod
    def _named(value: object, parameter: ast.arg) -> object:
        if isinstance(value, Ref) and not value.name:
            value.name = parameter.arg
        elif isinstance(value, Items) and not value.open_front:
            for index, item in enumerate(value.items):
                if isinstance(item, Ref) and not item.name:
                    item.name = f"{parameter.arg}[{index}]"
        return value


class _Inside:
    """Directs events into a region while it is active."""

    def __init__(self, walker: Walker, region: Region) -> None:
        self._walker = walker
        self._region = region
        self._outer = walker.region

    def __enter__(self) -> None:
        self._outer = self._walker.region
        self._outer.items.append(self._region)
        self._walker.region = self._region

    def __exit__(self, *exc: object) -> None:
        self._walker.region = self._outer


def _takes_all(arguments: ast.arguments, keywords: dict[str, object]) -> bool:
    """True where every parameter that is not given by name must be given by position."""
    named = (*arguments.posonlyargs, *arguments.args)
    optional = named[len(named) - len(arguments.defaults) :]
    return arguments.vararg is None and all(p.arg in keywords for p in optional)


def _positional(callee: Callee, keyed: set[str]) -> list[str]:
    """The parameters that are still to be bound by position."""
    arguments = callee.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][len(callee.args) :]
    bound = {name for name, _ in callee.kwargs} | keyed
    return [name for name in names if name not in bound]
