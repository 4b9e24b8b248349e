"""What is written in the place of each address: the name of a ref, or an entry of a list."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.linear import Linear
from pallas_fix.facts.values import Known, Region
from pallas_fix.rules.addresses.carriers import Carriers
from pallas_fix.rules.addresses.choosing import Collection, collections, entry
from pallas_fix.rules.addresses.lives import Room
from pallas_fix.rules.addresses.passing import (
    Parameter,
    Passing,
    What,
    fresh,
    is_inside,
    outside,
    run_of,
)
from pallas_fix.rules.addresses.sites import Key, Use
from pallas_fix.rules.base import Reason


@dataclass(frozen=True, slots=True)
class Ways:
    """How refs get to where they are needed.

    With `carried`, variables that carry addresses carry refs. With `each`, a function written
    elsewhere gets the accumulator of each run, else all of them. With `lists`, code that chooses
    takes from a list, else from a dict by MXU and address.
    """

    carried: bool
    each: bool
    lists: bool


@dataclass(frozen=True, slots=True)
class Places:
    """The edits that name the refs of a room.

    `names` are the parameters of its scope, in order, each with what it is. `targets` are the
    expressions that give way, `sources` those that must, and `nodes` those in its body that name
    a ref. `parameters` are new ones of functions written elsewhere.
    """

    edits: list[Edit]
    names: list[tuple[str, What]]
    targets: set[ast.expr]
    sources: set[ast.expr]
    nodes: list[ast.expr]
    parameters: list[Parameter]


def places(module: Facts, room: Room, ways: Ways) -> Places | Reason:
    """Name the refs of a room wherever an address stands."""
    return _Namer(module, room, ways).run()


class _Namer:
    def __init__(self, module: Facts, room: Room, ways: Ways) -> None:
        self._module = module
        self._room = room
        self._ways = ways
        self._addresses = {use.address for use in room.uses}
        self._carriers = Carriers(module, self._addresses)
        self._targets = self._chosen()
        several = [keys for uses in self._targets.values() if (keys := self._several(uses))]
        self._held = collections(several, lists=ways.lists)
        self._texts: dict[What, str] = {}
        self._passing = Passing(module, room, self._texts)

    def run(self) -> Places | Reason:
        names = list(self._names())
        edits: list[Edit] = []
        # A parameter that all runs of a function get serves those that only some of them need.
        for target, uses in sorted(self._targets.items(), key=lambda item: -len(item[1])):
            code = self._code(target, uses)
            if isinstance(code, Reason):
                return code
            edits.append(Replace(self._module.span(target), code))
        sources: set[ast.expr] = set()
        if self._carrying:
            sources = self._carriers.sources
            edits.extend(self._annotations())
        edits.extend(self._passing.edits)
        return Places(
            edits,
            names,
            set(self._targets),
            sources,
            self._passing.nodes,
            self._passing.parameters,
        )

    def _chosen(self) -> dict[ast.expr, list[Use]]:
        """What gives way: the same for all uses that an address in the code stands for."""
        chosen: dict[ast.expr, list[ast.expr]] = {}
        for use in self._room.uses:
            chosen.setdefault(use.address, []).append(self._target(use))
        found: dict[ast.expr, list[Use]] = {}
        for use in self._room.uses:
            own = chosen[use.address]
            target = use.address if use.address in own else own.pop(0)
            found.setdefault(target, []).append(use)
        return found

    def _target(self, use: Use) -> ast.expr:
        """The expression to replace: that of the call, or the number that a variable carries."""
        names, address, at = self._module.names, use.address, use.where.at
        source = at.node if isinstance(at, Known | Linear) else None
        if not self._ways.carried or source is None or not isinstance(address, ast.Name):
            return address
        if not is_inside(self._module, self._room, source) or not self._carriers.is_source(source):
            return address
        binding = names.binding(address, names.scope(address))
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
                spelled = self._module.names.spell("jax.Ref", annotation)
                yield Replace(self._module.span(annotation), Code(spelled.text))
                yield from spelled.imports

    def _several(self, uses: Sequence[Use]) -> set[Key] | None:
        """The accumulators of which one place chooses, if there are several."""
        keys = {use.key for use in uses if use.key is not None}
        return None if len(keys) == 1 or self._by_run(uses) else keys

    def _by_run(self, uses: Sequence[Use]) -> bool:
        """True where a function that is written elsewhere gets one accumulator in each run."""
        function = outside(self._module, self._room, uses[0].address)
        if function is None or not self._ways.each:
            return False
        runs: dict[Region | None, set[Key | None]] = {}
        for use in uses:
            runs.setdefault(run_of(function, use.chain), set()).add(use.key)
        return None not in runs and all(len(keys) == 1 for keys in runs.values())

    def _names(self) -> Iterator[tuple[str, What]]:
        """The parameters of the scope: accumulators on their own, then collections."""
        single = [key for key in self._room.keys if key not in self._held]
        for number, key in enumerate(single):
            yield self._new(key, f"acc{number}" if len(single) > 1 else "acc")
        for collection in dict.fromkeys(self._held.values()):
            name, what = self._new(collection, "accs")
            for key in collection.keys:
                self._texts[key] = f"{name}[{_shown(collection.index(key))}]"
            yield name, what

    def _new(self, what: What, base: str) -> tuple[str, What]:
        self._texts[what] = fresh(self._module, base, self._texts.values())
        return self._texts[what], what

    def _code(self, target: ast.expr, uses: Sequence[Use]) -> Code | Reason:
        keys = self._several(uses)
        if keys is None:
            items = [(use.chain, use.key) for use in uses if use.key is not None]
            text = self._passing.reach(target, items)
            return text if isinstance(text, Reason) else Code(text)
        collection: Collection = self._held[next(iter(keys))]
        name = self._passing.reach(target, [(use.chain, collection) for use in uses])
        if isinstance(name, Reason):
            return name
        return entry(self._module, target, uses, collection, name, self._lost)

    def _lost(self, expr: ast.expr) -> bool:
        """True for an expression with a variable that carries a ref now."""
        return self._carrying and self._carriers.carry(expr)


def _shown(index: object) -> str:
    return ", ".join(map(str, index)) if isinstance(index, tuple) else str(index)
