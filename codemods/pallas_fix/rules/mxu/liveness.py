"""How an accumulator is used over the run of a kernel, and whether it can be an MXU accumulator.

A VMEM ref keeps its value when it is read; an accumulator of the MXU starts at zero and is
zeroed by `matmul_pop` (jax/_src/pallas/mosaic/primitives.py). The walk below follows both at
once and decides for each use what it has to become.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum

from pallas_fix.facts import Facts
from pallas_fix.facts.indexing import is_zero
from pallas_fix.facts.values import Event, Loaded, Ref, Region, Trace, View
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.order import alternatives, exhaustive, waits

_MXU = ("acc", "pop")


class State(Enum):
    """What the ref holds at a point, as its author sees it and as an accumulator would."""

    ZERO = "zero in both"
    SUM = "the same sum in both"
    TAKEN = "popped: the accumulator is zero, the author's ref may still hold the sum"
    MIXED = "depends on the path"


class Action(Enum):
    """What a use becomes when the ref becomes an accumulator."""

    KEEP = "stays"
    POP = "becomes matmul_pop"
    AGAIN = "reads the value that was popped before"
    DROP = "goes away"
    FOLD = "is added to the value that is popped next"


@dataclass(slots=True)
class Life:
    """The uses of one ref in one walk.

    `actions` says what each use becomes; `obstacle` why the ref cannot simply become an
    accumulator: then its value has to outlive it, and a second ref is needed.
    """

    ref: Ref
    trace: Trace
    events: list[Event]
    actions: dict[ast.AST, Action] = field(default_factory=dict)
    obstacle: str = ""
    folds: dict[ast.AST, list[Event]] = field(default_factory=dict)

    def uses(self, *kinds: str) -> list[Event]:
        """The events of these kinds."""
        return [event for event in self.events if event.kind in kinds]


def life(module: Facts, trace: Trace, ref: Ref) -> Life | Reason:
    """Follow one ref, or say why that is not possible."""
    events = trace.uses(ref)
    # `matmul_acc_lhs(acc[...], x)` reads nothing: the ref itself was meant.
    passed = {e.how.node for e in events if e.kind in _MXU and isinstance(e.how, Loaded)}
    kept = [event for event in events if event.node not in passed]
    for event in kept:
        reason = _hopeless(module, event)
        if reason is not None:
            return reason
    return lifetime(module, trace, ref, kept)


def lifetime(module: Facts, trace: Trace, ref: Ref, events: list[Event]) -> Life:
    """Follow these uses of a ref."""
    found = Life(ref, trace, events)
    walk = _Walk(module, found)
    end = walk.region(trace.root, State.ZERO)
    if ref.kind in ("scratch", "operand") and trace.launch and trace.launch.repeats:
        end = walk.region(trace.root, State.ZERO if end is State.ZERO else State.TAKEN)
    walk.leave(end)
    return found


def _hopeless(module: Facts, event: Event) -> Reason | None:
    where = f"line {module.span(event.node).line}"
    if event.kind == "escape":
        return Reason(
            "ref-escapes",
            f"the ref is handed to code that pallas-fix does not follow ({where})",
            "move the allocation to pltpu.ACC by hand if that code only accumulates into it",
        )
    if isinstance(event.how, View) and not event.how.whole:
        return Reason(
            "sliced-accumulator",
            f"a part of the ref is used as an accumulator ({where}); accumulators take no "
            "index and no transform",
            "allocate one 2-d pltpu.ACC for each part, and pass the whole ref",
        )
    partial = event.kind in ("load", "store", "update") and not event.whole
    if partial:
        return Reason(
            "partial-access",
            f"a part of the ref is read or written ({where}); an accumulator can only be "
            "popped whole",
            "pop the accumulator into a value or a VMEM ref, and slice that",
        )
    return None


class _Walk:
    """Runs the state of one ref through the regions of a walk."""

    def __init__(self, module: Facts, found: Life) -> None:
        self._module = module
        self._life = found
        self._pending: list[Event] = []

    def region(self, region: Region, state: State) -> State:
        """Run a region from a state to the state in which it leaves the ref."""
        if not any(event.ref is self._life.ref for event in region.events()):
            return state
        if region.kind == "unknown":
            self._stop("it is used in a function that unknown code runs")
            return State.MIXED
        if region.kind == "loop":
            once = self._items(region, state)
            return _merge(state, self._items(region, _merge(state, once)))
        if self._creates(region):
            # A new ref each time: what matters is that the last one left nothing behind.
            state = State.ZERO if state in (State.ZERO, State.TAKEN) else State.MIXED
            state = self._items(region, state)
            self.leave(state)
            return state
        return self._items(region, state)

    def leave(self, state: State) -> None:
        """The end of a ref: an accumulator that still holds a sum hands it to the next one."""
        read = any(event.kind in ("load", "pop") for event in self._life.events)
        if self._life.ref.kind != "param" and read and state in (State.SUM, State.MIXED):
            self._stop("it is not read on every path, and an accumulator must be left empty")

    def _creates(self, region: Region) -> bool:
        slot = self._life.ref.slot
        scoped = self._life.ref.kind == "scoped" and slot is not None
        return scoped and region.kind == "body" and region.at is (slot and slot.container)

    def _items(self, region: Region, state: State) -> State:
        for item in alternatives(region.items):
            if isinstance(item, Event):
                state = self._event(item, state) if item in self._life.events else state
                continue
            if any(event.ref is self._life.ref for one in item for event in one.events()):
                self._settle()
            ends = [self.region(one, state) for one in item]
            if item[0].kind == "branch" and not exhaustive(item):
                ends.append(state)
            state = ends[0]
            for end in ends[1:]:
                state = _merge(state, end)
        self._settle()
        return state

    def _settle(self) -> None:
        """An addition may only wait for a pop in the same stretch of code."""
        if self._pending:
            self._stop("a value is added to it in the middle")
            self._pending.clear()

    def _event(self, event: Event, state: State) -> State:
        match event.kind:
            case "acc":
                self._settle()
                if state in (State.TAKEN, State.MIXED):
                    self._stop("it goes on accumulating after it was read")
                self._note(event, Action.KEEP)
                return State.SUM
            case "pop":
                self._take(event, state, Action.KEEP)
                return State.ZERO
            case "load":
                if state is State.TAKEN:
                    self._note(event, Action.AGAIN)
                    return state
                self._take(event, state, Action.POP)
                return State.TAKEN
            case "store":
                return self._store(event, state)
            case "update":
                return self._update(event, state)
        return state

    def _take(self, event: Event, state: State, action: Action) -> None:
        if state in (State.TAKEN, State.MIXED):
            self._stop("it is read at a place that the accumulation may not have reached")
        if self._pending:
            if not all(waits(self._module, fold.node, event.node) for fold in self._pending):
                self._stop("a value is added to it in the middle")
            self._life.folds[event.node] = list(self._pending)
            self._pending.clear()
        self._note(event, action)

    def _store(self, event: Event, state: State) -> State:
        if not is_zero(event.value, self._module.names):
            self._stop("it starts with a value that is not zero")
        elif state in (State.ZERO, State.TAKEN):
            self._note(event, Action.DROP)
            return State.ZERO
        else:
            self._stop("it is zeroed while it may hold a sum")
        return State.MIXED

    def _update(self, event: Event, state: State) -> State:
        node = event.node
        added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub)
        if added and state in (State.SUM, State.ZERO):
            self._pending.append(event)
            self._note(event, Action.FOLD)
            return State.SUM
        self._stop("a value is added to it in the middle")
        return State.MIXED

    def _note(self, event: Event, action: Action) -> None:
        before = self._life.actions.setdefault(event.node, action)
        if before is not action:
            self._stop("one line of code uses it in two ways")

    def _stop(self, why: str) -> None:
        self._life.obstacle = self._life.obstacle or why


def _merge(one: State, two: State) -> State:
    if one is two:
        return one
    pair = {one, two}
    if pair == {State.ZERO, State.SUM}:
        return State.SUM
    return State.TAKEN if pair == {State.ZERO, State.TAKEN} else State.MIXED
