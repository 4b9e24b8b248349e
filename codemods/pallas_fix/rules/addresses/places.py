"""What is written in the place of each address: the name of a ref, or an entry of a list."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pallas_fix.edits import AddParameter, Code, Edit, Replace, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.linear import Linear
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Known, Region
from pallas_fix.rules.addresses.carriers import Carriers
from pallas_fix.rules.addresses.lives import Room
from pallas_fix.rules.addresses.sites import Key, Use, integer, order
from pallas_fix.rules.base import Reason


@dataclass(frozen=True, slots=True)
class Collection:
    """Accumulators of which code chooses one by a number: a list, or a dict by `parts` of keys."""

    keys: tuple[Key, ...]
    parts: tuple[int, ...] = ()

    def index(self, key: Key) -> object:
        """What stands between the brackets for a key."""
        if not self.parts:
            return self.keys.index(key)
        found = tuple(key[part] for part in self.parts)
        return found[0] if len(found) == 1 else found


@dataclass(slots=True)
class Places:
    """The edits that name the refs of a room.

    `names` are the parameters of the scope, in order, each with what it is. `targets` are the
    expressions that give way, `sources` those that must, and `nodes` those in the body of the
    room. `calls` are the calls through which a ref reaches each function written elsewhere.
    """

    edits: list[Edit] = field(default_factory=list)
    names: list[tuple[str, Key | Collection]] = field(default_factory=list)
    targets: set[ast.expr] = field(default_factory=set)
    sources: set[ast.expr] = field(default_factory=set)
    nodes: list[ast.expr] = field(default_factory=list)
    calls: dict[Function, set[ast.AST]] = field(default_factory=dict)


def places(module: Facts, room: Room, *, carried: bool, lists: bool) -> Places | Reason:
    """Name the refs of a room wherever an address stands.

    With `carried`, refs take the place of the numbers that variables carry. Code that chooses
    takes from `lists`, else from dicts by MXU and address.
    """
    return _Namer(module, room, carried=carried, lists=lists).run()


_Item = tuple[tuple[Region, ...], Key | Collection]
"""One time that a ref is needed: the functions that run, and the ref."""


class _Namer:
    def __init__(self, module: Facts, room: Room, *, carried: bool, lists: bool) -> None:
        self._module = module
        self._names = module.names
        self._room = room
        self._lists = lists
        self._around = set(module.names.enclosing(room.function))
        self._addresses = {use.address for use in room.uses}
        self._carriers = Carriers(module, self._addresses)
        self._found = Places()
        self._held: dict[Key, Collection] = {}
        self._texts: dict[Key | Collection, str] = {}
        self._parameters: dict[tuple[Function, frozenset[tuple[Region, object]]], str] = {}
        self._targets: dict[ast.expr, list[Use]] = {}
        self._choose(carried=carried)

    def _choose(self, *, carried: bool) -> None:
        """What gives way for each use: the same for all that an address in the code stands for."""
        chosen: dict[ast.expr, list[ast.expr]] = {}
        for use in self._room.uses:
            chosen.setdefault(use.address, []).append(self._target(use, carried=carried))
        for use in self._room.uses:
            own = chosen[use.address]
            target = use.address if use.address in own else own.pop(0)
            self._targets.setdefault(target, []).append(use)

    def run(self) -> Places | Reason:
        self._collect()
        self._name()
        for target, uses in self._targets.items():
            code = self._code(target, uses)
            if isinstance(code, Reason):
                return code
            self._found.edits.append(Replace(self._module.span(target), code))
        self._found.targets = set(self._targets)
        if self._carrying:
            self._found.sources = self._carriers.sources
            self._found.edits.extend(self._annotations())
        return self._found

    def _target(self, use: Use, *, carried: bool) -> ast.expr:
        """The expression to replace: that of the call, or the number that a variable carries."""
        address, at = use.address, use.where.at
        source = at.node if isinstance(at, Known | Linear) else None
        if not carried or source is None or not isinstance(address, ast.Name):
            return address
        if not self._visible(source) or not self._carriers.is_source(source):
            return address
        binding = self._names.binding(address, self._names.scope(address))
        same = {other.key for other in self._room.uses if other.address is address}
        if binding is not None and binding.kind == "assign" and len(same) == 1:
            return address
        return source if self._carriers.only(address) else address

    @property
    def _carrying(self) -> bool:
        return any(target not in self._addresses for target in self._targets)

    def _annotations(self) -> Iterator[Edit]:
        """Parameters that are said to be integers are refs now."""
        for parameter in self._carriers.parameters:
            annotation = parameter.annotation
            if isinstance(annotation, ast.Name) and annotation.id == "int":
                spelled = self._names.spell("jax.Ref", annotation)
                yield Replace(self._module.span(annotation), Code(spelled.text))
                yield from spelled.imports

    def _visible(self, node: ast.AST) -> bool:
        return self._room.function in self._names.enclosing(node)

    def _collect(self) -> None:
        """Put accumulators together of which one place chooses."""
        groups: list[set[Key]] = []
        for uses in self._targets.values():
            keys = {use.key for use in uses if use.key is not None}
            if len(keys) > 1 and not self._by_run(uses):
                joined = [group for group in groups if group & keys]
                groups = [group for group in groups if not group & keys]
                groups.append(keys.union(*joined))
        for group in groups:
            found = tuple(sorted(group, key=order))
            parts: tuple[int, ...] = ()
            if not self._lists:
                parts = tuple(n for n in (0, 1) if len({key[n] for key in found}) > 1)
            for key in found:
                self._held[key] = Collection(found, parts)

    def _by_run(self, uses: Sequence[Use]) -> bool:
        """True where a function that is written elsewhere gets one accumulator in each run."""
        node = uses[0].address
        outside = self._outside(node)
        if outside is None:
            return False
        runs: dict[Region, set[Key | None]] = {}
        for use in uses:
            region = _run_of(outside, use.chain)
            if region is None:
                return False
            runs.setdefault(region, set()).add(use.key)
        return all(len(keys) == 1 for keys in runs.values())

    def _outside(self, node: ast.AST) -> Function | None:
        """The outermost function around a node that is not written inside the room."""
        if self._visible(node):
            return None
        own = [
            function
            for function in self._names.enclosing(node)
            if function is not self._room.function and function not in self._around
        ]
        return own[-1] if own else None

    def _name(self) -> None:
        single = [key for key in self._room.keys if key not in self._held]
        several = list(dict.fromkeys(self._held.values()))
        taken: set[str] = set()
        for number, key in enumerate(single):
            self._new(key, f"acc{number}" if len(single) > 1 else "acc", taken)
        for collection in several:
            name = self._new(collection, "accs", taken)
            for key in collection.keys:
                self._texts[key] = f"{name}[{_shown(collection.index(key))}]"

    def _new(self, what: Key | Collection, base: str, taken: set[str]) -> str:
        name = self._fresh(base, taken)
        self._found.names.append((name, what))
        self._texts[what] = name
        return name

    def _fresh(self, base: str, taken: set[str]) -> str:
        name, count = self._names.fresh(base), 1
        while name in taken:
            count += 1
            name = self._names.fresh(f"{base}_{count}")
        taken.add(name)
        return name

    def _code(self, target: ast.expr, uses: Sequence[Use]) -> Code | Reason:
        keys = {use.key for use in uses if use.key is not None}
        items = [(use.chain, use.key) for use in uses if use.key is not None]
        if len(keys) == 1 or self._by_run(uses):
            text = self._reach(target, items)
            return text if isinstance(text, Reason) else Code(text)
        collection = self._held[next(iter(keys))]
        name = self._reach(target, [(use.chain, collection) for use in uses])
        if isinstance(name, Reason):
            return name
        return self._chosen(target, uses, collection, name)

    def _reach(self, node: ast.AST, items: Sequence[_Item]) -> str | Reason:
        """How code at a place names a ref, after the ref has been passed to where it is."""
        outside = self._outside(node)
        if outside is None:
            wanted = {what for _, what in items}
            if not self._visible(node) or len(wanted) > 1:
                return _unreachable()
            if isinstance(node, ast.expr):
                self._found.nodes.append(node)
            return self._texts[wanted.pop()]
        runs: dict[Region, Key | Collection] = {}
        inner: dict[ast.AST, list[_Item]] = {}
        for chain, what in items:
            region = _run_of(outside, chain)
            if region is None or runs.setdefault(region, what) != what:
                return _unreachable()
            call = region.at
            if not isinstance(call, ast.Call) or self._names.definition(call.func) is not outside:
                return _not_plain(outside)
            inner.setdefault(call, []).append((chain[: chain.index(region)], what))
        known = frozenset((region, self._texts[what]) for region, what in runs.items())
        key = (outside, known)
        if key not in self._parameters:
            several = any(isinstance(what, Collection) for what in runs.values())
            passed = self._pass(outside, inner, several)
            if isinstance(passed, Reason):
                return passed
            self._parameters[key] = passed
        return self._parameters[key]

    def _pass(
        self, function: Function, calls: dict[ast.AST, list[_Item]], several: bool
    ) -> str | Reason:
        """Give a function a new parameter, and its calls the argument for it."""
        if not isinstance(function, ast.FunctionDef) or not _takes_more(function, calls):
            return _not_plain(function)
        taken = {name for (of, _), name in self._parameters.items() if of is function}
        name = self._fresh("accs" if several else "acc", taken)
        self._found.edits.append(AddParameter(self._module.span(function), name))
        self._found.calls.setdefault(function, set()).update(calls)
        for call, items in calls.items():
            text = self._reach(call, items)
            if isinstance(text, Reason):
                return text
            self._found.edits.append(SetKeyword(self._module.span(call), name, Code(text)))
        return name

    def _chosen(
        self, target: ast.expr, uses: Sequence[Use], collection: Collection, name: str
    ) -> Code | Reason:
        """The entry of a collection, chosen by a number that the code works out there."""
        if collection.parts and any(isinstance(key[1], Linear) for key in collection.keys):
            return _no_index()
        if not collection.parts:
            wanted = [collection.index(use.key) for use in uses if use.key is not None]
            index = self._expression(target, uses, wanted)
            return Code(f"{name}[$i]", {"i": self._module.span(index)}) if index else _no_index()
        texts: list[str] = []
        parts = {}
        for part in collection.parts:
            own = [use.key[part] for use in uses if use.key is not None]
            index = self._expression(target, uses, own, last=True)
            if index is None:
                return _no_index()
            parts[f"i{part}"] = self._module.span(index)
            texts.append(f"$i{part}")
        return Code(f"{name}[{', '.join(texts)}]", parts)

    def _expression(
        self,
        target: ast.expr,
        uses: Sequence[Use],
        wanted: Sequence[object],
        *,
        last: bool = False,
    ) -> ast.expr | None:
        """The shortest expression at a place with these values, one for each use, or the longest.

        What carries refs has no values any more.
        """
        found = [dict(_values(target, use)) for use in uses]
        fitting = [
            expr
            for expr in found[0]
            if all(of.get(expr) == value for of, value in zip(found, wanted, strict=True))
            and not (self._carrying and self._carriers.carry(expr))
        ]
        return min(fitting, key=lambda expr: -_size(expr) if last else _size(expr), default=None)


def _takes_more(function: ast.FunctionDef, calls: Iterable[ast.AST]) -> bool:
    """True if a new parameter, before those with defaults, moves no argument of the calls."""
    arguments = function.args
    named = len(arguments.posonlyargs) + len(arguments.args)
    given = [call.args for call in calls if isinstance(call, ast.Call)]
    if arguments.defaults and any(len(args) > named - len(arguments.defaults) for args in given):
        return False
    starred = any(isinstance(arg, ast.Starred) for args in given for arg in args)
    return arguments.vararg is None and not (starred and arguments.defaults)


def _run_of(function: Function, chain: Sequence[Region]) -> Region | None:
    """The innermost run of a function in a chain."""
    return next((region for region in reversed(chain) if region.node is function), None)


def _values(target: ast.expr, use: Use) -> Iterator[tuple[ast.expr, int]]:
    """The integers that are worked out where an address is, with their expressions."""
    yield from _tree(target, use.where.at)
    if target is use.address and use.mxu is not None:
        yield from _tree(use.mxu, use.where.mxu)


def _tree(expr: ast.expr, value: object) -> Iterator[tuple[ast.expr, int]]:
    number = integer(value)
    if number is not None and not isinstance(expr, ast.Constant):
        yield expr, number
    if isinstance(value, Known | Linear) and value.node is expr:
        for part, inner in value.parts:
            yield from _tree(part, inner)


def _size(expr: ast.expr) -> int:
    return sum(1 for _ in ast.walk(expr))


def _shown(index: object) -> str:
    return ", ".join(map(str, index)) if isinstance(index, tuple) else str(index)


def _unreachable() -> Reason:
    return Reason(
        "several-accumulators",
        "one line works on several accumulators, and nothing there tells which one",
        "pass the accumulator refs to the function, in the place of their addresses",
    )


def _no_index() -> Reason:
    return Reason(
        "several-accumulators",
        "one line works on several accumulators, and no number there chooses one",
        "allocate a list of pltpu.ACC, and index it with the variable of the Python loop",
    )


def _not_plain(function: Function) -> Reason:
    name = getattr(function, "name", "a lambda")
    return Reason(
        "helper-not-plain",
        f"`{name}` is written outside of the kernel, and is called in a way in which pallas-fix "
        "cannot pass it an accumulator",
        f"give `{name}` a parameter for the accumulator ref",
    )
