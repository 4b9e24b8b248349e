"""How long an accumulator holds something: the smallest function that begins and ends without.

In the API by address the accumulators of a kernel are there all the time, and what is not popped
stays (jax/_src/pallas/mosaic/primitives.py of jax 0.11.1). A ref lives as long as its scope.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Event, Region, Trace
from pallas_fix.rules.addresses.sites import Key, Use, order
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.order import alternatives, exhaustive


@dataclass(frozen=True, slots=True)
class Room:
    """A function in whose body accumulators begin and end, and their uses in one walk."""

    trace: Trace
    function: Function
    uses: tuple[Use, ...]

    @property
    def keys(self) -> list[Key]:
        """The accumulators, by MXU and address."""
        return sorted({use.key for use in self.uses if use.key is not None}, key=order)

    def of(self, key: Key) -> list[Use]:
        """The uses of one accumulator, in order."""
        return [use for use in self.uses if use.key == key]


def rooms(trace: Trace, uses: Sequence[Use]) -> list[Room] | Reason:
    """The uses of a walk, each in the smallest function that keeps its accumulator together."""
    lives = {key: _Life(trace, uses, key) for key in {use.key for use in uses}}
    keys = _keys_of_runs(uses)
    found: dict[Function, list[Use]] = {}
    for use in uses:
        home = _home(use, lives[use.key], keys)
        if home is None:
            return _left(trace)
        found.setdefault(home, []).append(use)
    return [Room(trace, function, tuple(own)) for function, own in found.items()]


def _keys_of_runs(uses: Iterable[Use]) -> dict[ast.AST, dict[Region, set[Key | None]]]:
    """For each function, the accumulators that each of its runs uses."""
    found: dict[ast.AST, dict[Region, set[Key | None]]] = {}
    for use in uses:
        for region in use.chain:
            found.setdefault(region.node, {}).setdefault(region, set()).add(use.key)
    return found


def _home(
    use: Use, life: _Life, keys: dict[ast.AST, dict[Region, set[Key | None]]]
) -> Function | None:
    outermost = use.functions[0]
    for function in reversed(use.functions):
        runs = keys[function]
        same = all(found == runs[next(iter(runs))] for found in runs.values())
        named = function is outermost or not isinstance(function, ast.Lambda)
        if same and named and life.ends_in(function, runs):
            return function
    return outermost if life.by_contract else None


def _left(trace: Trace) -> Reason:
    if trace.launch is None:
        return Reason(
            "left-behind",
            "the function may end with something in an accumulator, which a ref does not keep",
            "pop it in the function that accumulates, or take the accumulator ref as a parameter",
        )
    return Reason(
        "over-grid-steps",
        "a grid step may start with what another one left in an accumulator, and a ref of "
        "pltpu.ACC lives no longer than its scope",
        "pop in each step and add to a pltpu.VMEM scratch ref, or loop over K inside the kernel",
    )


class _Life:
    """Whether an accumulator may hold something where functions begin and end."""

    def __init__(self, trace: Trace, uses: Sequence[Use], key: Key | None) -> None:
        own = [use for use in uses if use.key == key]
        self._kinds = {use.event: use.event.kind for use in own}
        self._inside = {region for use in own for region in use.chain}
        self._holding: set[Region] = set()
        self._acc = {r for use in own if not use.pops for r in use.chain}
        self._pop = {r for use in own if use.pops for r in use.chain}
        launch = trace.launch
        self.by_contract = launch is not None and not launch.repeats
        """A kernel must leave nothing behind: what is popped on the same condition is popped."""
        end = self._run(trace.root, holds=False)
        if not self.by_contract:
            self._run(trace.root, holds=end)

    def ends_in(self, function: Function, runs: Iterable[Region]) -> bool:
        """True if it is empty wherever the function begins and ends."""
        own = [region for region in runs if region in self._inside]
        kept = self._acc & self._pop
        return all(r.node is function and r in kept and r not in self._holding for r in own)

    def _run(self, region: Region, *, holds: bool) -> bool:
        if region.kind == "loop":
            once = self._items(region, holds=holds)
            end = holds or self._items(region, holds=holds or once)
        else:
            end = self._items(region, holds=holds) or region.kind == "unknown"
        if holds or end:
            self._holding.add(region)
        return end

    def _items(self, region: Region, *, holds: bool) -> bool:
        for item in alternatives(region.items):
            if isinstance(item, Event):
                kind = self._kinds.get(item)
                holds = kind == "acc" if kind is not None else holds
                continue
            ends = [self._run(one, holds=holds) for one in item]
            if item[0].kind == "branch" and not exhaustive(item):
                ends.append(holds)
            holds = any(ends)
        return holds
