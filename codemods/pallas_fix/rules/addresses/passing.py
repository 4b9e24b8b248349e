"""Refs for functions that are written outside of the kernel: parameters, and arguments for them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pallas_fix.edits import AddParameter, Code, Edit, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Region
from pallas_fix.rules.addresses.choosing import Collection
from pallas_fix.rules.addresses.lives import Room
from pallas_fix.rules.addresses.sites import Key
from pallas_fix.rules.base import Reason

What = Key | Collection
Item = tuple[tuple[Region, ...], What]
"""One time that a ref is needed: the functions that run, and what is meant."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A new parameter of a function: what it is in each run, and the calls that pass it."""

    function: Function
    name: str
    runs: Mapping[Region, What]
    calls: frozenset[ast.AST]


@dataclass(slots=True)
class Passing:
    """Brings refs from the scope of a room to where they are needed.

    `texts` say how they are called in the room. `nodes` are the expressions there that need one.
    """

    module: Facts
    room: Room
    texts: Mapping[What, str]
    edits: list[Edit] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    nodes: list[ast.expr] = field(default_factory=list)

    def reach(self, node: ast.expr, items: Sequence[Item]) -> str | Reason:
        """How code at a place names what it needs, after that has been passed to it."""
        function = outside(self.module, self.room, node)
        if function is None:
            wanted = {what for _, what in items}
            if not is_inside(self.module, self.room, node) or len(wanted) > 1:
                return unreachable()
            self.nodes.append(node)
            return self.texts[wanted.pop()]
        runs: dict[Region, What] = {}
        calls: dict[ast.Call, list[Item]] = {}
        for chain, what in items:
            region = run_of(function, chain)
            if region is None or runs.setdefault(region, what) != what:
                return unreachable()
            call = region.at
            if not isinstance(call, ast.Call):
                return _not_plain(function)
            if self.module.names.definition(call.func) is not function:
                return _not_plain(function)
            calls.setdefault(call, []).append((chain[: chain.index(region)], what))
        for known in self.parameters:
            if known.function is function and runs.items() <= known.runs.items():
                return known.name
        return self._new(function, runs, calls)

    def _new(
        self,
        function: Function,
        runs: Mapping[Region, What],
        calls: Mapping[ast.Call, Sequence[Item]],
    ) -> str | Reason:
        if not isinstance(function, ast.FunctionDef) or not _takes_more(function, calls):
            return _not_plain(function)
        several = any(isinstance(what, Collection) for what in runs.values())
        taken = {known.name for known in self.parameters if known.function is function}
        name = fresh(self.module, "accs" if several else "acc", taken)
        self.parameters.append(Parameter(function, name, runs, frozenset(calls)))
        self.edits.append(AddParameter(self.module.span(function), name))
        for call, items in calls.items():
            text = self.reach(call, items)
            if isinstance(text, Reason):
                return text
            self.edits.append(SetKeyword(self.module.span(call), name, Code(text)))
        return name


def outside(module: Facts, room: Room, node: ast.AST) -> Function | None:
    """The outermost function around a node that is not written inside the room."""
    if is_inside(module, room, node):
        return None
    around = {room.function, *module.names.enclosing(room.function)}
    own = [function for function in module.names.enclosing(node) if function not in around]
    return own[-1] if own else None


def is_inside(module: Facts, room: Room, node: ast.AST) -> bool:
    """True for code that is written in the function of the room."""
    return room.function in module.names.enclosing(node)


def run_of(function: Function, chain: Sequence[Region]) -> Region | None:
    """The innermost run of a function in a chain."""
    return next((region for region in reversed(chain) if region.node is function), None)


def fresh(module: Facts, base: str, taken: Iterable[str]) -> str:
    """A name like `base` that is new in the file, and not taken."""
    name, count = module.names.fresh(base), 1
    while name in taken:
        count += 1
        name = module.names.fresh(f"{base}_{count}")
    return name


def _takes_more(function: ast.FunctionDef, calls: Iterable[ast.Call]) -> bool:
    """True if a new parameter, before those with defaults, moves no argument of the calls."""
    arguments = function.args
    if arguments.vararg is not None:
        return False
    plain = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return not arguments.defaults or not any(
        len(call.args) > plain or any(isinstance(arg, ast.Starred) for arg in call.args)
        for call in calls
    )


def unreachable() -> Reason:
    """Nothing says which of several accumulators is meant."""
    return Reason(
        "several-accumulators",
        "one line works on several accumulators, and nothing there tells which one",
        "pass the accumulator refs to the function, in the place of their addresses",
    )


def _not_plain(function: Function) -> Reason:
    name = getattr(function, "name", "a lambda")
    return Reason(
        "helper-not-plain",
        f"`{name}` is written outside of the kernel, and is called in a way in which pallas-fix "
        "cannot pass it an accumulator",
        f"give `{name}` a parameter for the accumulator ref",
    )
