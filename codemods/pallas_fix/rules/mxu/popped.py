"""Pops whose zero somebody counts on: `matmul_pop` also zeroes what it reads."""

from __future__ import annotations

import ast

from pallas_fix.facts.values import Event, Region
from pallas_fix.rules.mxu.liveness import Life
from pallas_fix.rules.mxu.order import alternatives, exhaustive

_Popped = frozenset[Event]


def zeroed_pops(life: Life) -> set[ast.AST]:
    """The pops after which a ref in memory must be zeroed to be what the author meant.

    Those from which some path leads to another use without a store in between. A store at the
    first step of a grid axis comes after a pop at the last step of that axis.
    """
    walk = _Walk(life)
    end = walk.items(life.trace.root, frozenset())
    launch = life.trace.launch
    if life.ref.kind in ("scratch", "operand") and launch is not None and launch.repeats:
        walk.again = True
        walk.items(life.trace.root, end)
    return walk.counted


class _Walk:
    def __init__(self, life: Life) -> None:
        self._life = life
        self._last: dict[Event, set[int]] = {}
        self._axes: tuple[int, ...] = ()
        self.again = False
        self.counted: set[ast.AST] = set()

    def items(self, region: Region, popped: _Popped) -> _Popped:
        for item in alternatives(region.items):
            if isinstance(item, Event):
                popped = self._event(item, popped)
                continue
            ends = [self._region(one, popped) for one in item]
            first = {one.test.axis for one in item if one.test and one.test.edge == "first"}
            if item[0].kind == "branch" and not exhaustive(item):
                ends.append(popped)
            merged = frozenset[Event]().union(*ends)
            if self.again and first and not ends[0]:
                # The last step of an axis is followed by its first one.
                merged -= {pop for pop in merged if self._last.get(pop, set()) & first}
            popped = merged
        return popped

    def _region(self, region: Region, popped: _Popped) -> _Popped:
        outer = self._axes
        if region.test is not None and region.test.edge == "last":
            self._axes = (*outer, region.test.axis)
        end = self.items(region, popped)
        if region.kind == "loop":
            end = self.items(region, popped | end) | popped
        self._axes = outer
        return end

    def _event(self, event: Event, popped: _Popped) -> _Popped:
        if event not in self._life.events or event.kind == "meta":
            return popped
        if event.kind == "store":
            return frozenset()
        self.counted |= {pop.node for pop in popped}
        if event.kind == "pop":
            self._last[event] = set(self._axes)
            return frozenset({event})
        return frozenset()
