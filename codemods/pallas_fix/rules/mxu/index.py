"""Which MXU an accumulator works on: the one whose staged weights its matmuls load.

`matmul_push_rhs` stages weights in a register of one MXU, `matmul_acc_lhs(load_staged_rhs=r)`
loads them from register `r` of the MXU that its accumulator belongs to, and each MXU has its own
registers (jax/_src/pallas/mosaic/primitives.py). No compiler finds an accumulator on the wrong
MXU: the numbers are silently wrong. So the index is worked out from the flow, or not at all.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pallas_fix.facts import Facts
from pallas_fix.facts.constants import UNKNOWN, Value
from pallas_fix.facts.values import Event, Ref, Region, Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.order import alternatives

MXUS = 2
"""MXUs of a TPU7x core (`num_mxus` in jax/_src/tpu_info.py)."""

ENTRIES = 128
"""Accumulator entries of 8 rows for each MXU of it (`num_accumulators` there)."""


def mxu_index(module: Facts, trace: Trace, ref: Ref) -> int | Reason:
    """The index of the MXU that `ref` accumulates on in `trace`, or why it is not certain.

    Each matmul into the ref that loads weights must load what was pushed to one and the same
    MXU. One that loads none goes on with the weights that an MXU holds already. An accumulator
    without a matmul takes the one MXU that the trace uses; where it uses none, any will do.
    """
    feeding = feeds(module, trace)
    events = list(trace.root.events())
    own = [event for event in events if event.kind == "acc" and event.ref is ref]
    loading = [event for event in own if event.register is not None]
    indices: set[Value] = set()
    for event in loading or own:
        if not feeding[event]:
            return _unknown("no matmul_push_rhs before it stages the weights that it loads")
        indices |= {push.mxu for push in feeding[event]}
    if not own:
        used = {event.mxu for event in events if event.kind == "push"}
        escapes = any(event.kind == "escape" for event in events)
        indices = used if used or escapes else {0}
    return _one(indices)


def allocation_index(module: Facts, node: ast.expr) -> int | Reason:
    """The MXU index for the accumulator that `node` allocates, wherever the ref goes.

    Every walk that reaches the allocation must agree. An allocation that none reaches takes the
    index that all pushes of the file share, if there is one.
    """
    found: set[Value] = set()
    for trace, ref in allocated(module, node):
        index = mxu_index(module, trace, ref)
        if isinstance(index, Reason):
            return index
        found.add(index)
    if not found:
        events = (event for trace in module.traces for event in trace.root.events())
        found = {event.mxu for event in events if event.kind == "push"}
    return _one(found)


def allocated(module: Facts, node: ast.expr) -> Iterator[tuple[Trace, Ref]]:
    """The refs that the allocation `node` creates, each with the walk that meets it."""
    for trace in module.traces:
        for ref in trace.refs:
            if ref.allocation is not None and ref.allocation.node is node:
                yield trace, ref


def feeds(module: Facts, trace: Trace) -> Mapping[Event, frozenset[Event]]:
    """For each matmul of a walk, the pushes whose weights it may multiply with.

    The matmuls are `acc` and `fifo` events. Where one loads no new weights, these are the
    pushes whose weights an MXU may hold. Empty where nothing was pushed that could be meant.
    """
    flow = _Flow(module)
    flow.run(trace.root.items, _State())
    return flow.feeding


def staged_feeds(module: Facts, trace: Trace) -> Mapping[Event, frozenset[Event]]:
    """As `feeds`, but only for the matmuls that load staged weights.

    `load_staged_rhs=False` is no register. It is read as "load nothing" where an MXU holds
    weights already; where none does, weights must have been meant.
    """
    flow = _Flow(module)
    flow.run(trace.root.items, _State())
    return {event: feeding for event, feeding in flow.feeding.items() if flow.loading[event]}


def staged_register(register: Value) -> int | None:
    """The staging register that a value names, if it is an integer (a bool is not one)."""
    if isinstance(register, bool):
        return None
    if isinstance(register, float):
        return int(register) if register.is_integer() else None
    if isinstance(register, str):
        return int(register) if register.isdecimal() else None
    return register if isinstance(register, int) else None


def _one(indices: set[Value]) -> int | Reason:
    known = [index for index in indices if type(index) is int]
    if len(known) != len(indices):
        return _unknown("the mxu_index of the push is not a constant")
    if not known:
        return _unknown("no matmul_push_rhs was found for it")
    if len(known) > 1:
        listed = " and ".join(str(index) for index in sorted(known))
        return _unknown(f"its weights may have been pushed to the MXUs {listed}")
    if not 0 <= known[0] < MXUS:
        return _unknown(f"its weights are pushed to MXU {known[0]}, and there are {MXUS}")
    return known[0]


def _unknown(why: str) -> Reason:
    return Reason(
        "mxu-unknown",
        f"the MXU of this accumulator is not certain: {why}",
        "write pltpu.ACC(i)(shape, dtype), where i is the mxu_index of the matmul_push_rhs whose "
        "weights its matmul_acc_lhs loads",
    )


@dataclass(slots=True)
class _State:
    """What is staged and loaded at one point of a kernel.

    `staged` holds the pushes not loaded yet; True where that is so on every path. `latest` has
    the last pushes to each register, `held` those whose weights an MXU may have loaded.
    """

    staged: dict[Event, bool] = field(default_factory=dict)
    latest: dict[int | None, frozenset[Event]] = field(default_factory=dict)
    held: frozenset[Event] = frozenset()

    def copy(self) -> _State:
        return _State(dict(self.staged), dict(self.latest), self.held)

    def join(self, other: _State) -> _State:
        """What is known where either this or the other state holds."""
        staged = {
            push: self.staged.get(push, False) and other.staged.get(push, False)
            for push in (*self.staged, *other.staged)
        }
        none: frozenset[Event] = frozenset()
        registers = {*self.latest, *other.latest}
        latest = {r: self.latest.get(r, none) | other.latest.get(r, none) for r in registers}
        return _State(staged, latest, self.held | other.held)


class _Flow:
    """Runs the events of a walk in order, and keeps for each matmul what feeds it."""

    def __init__(self, module: Facts) -> None:
        self._module = module
        self.feeding: dict[Event, frozenset[Event]] = {}
        self.loading: dict[Event, bool] = {}

    def run(self, items: Iterable[Event | Region], state: _State) -> _State:
        """The state after `items`, from the state before them."""
        for group in alternatives(items):
            if isinstance(group, Event):
                self._event(group, state)
            elif len(group) > 1:
                ends = [self.run(region.items, state.copy()) for region in group]
                state = ends[0]
                for end in ends[1:]:
                    state = state.join(end)
            elif group[0].kind in ("body", "unrolled"):
                state = self.run(group[0].items, state)
            elif group[0].kind == "loop":
                once = self.run(group[0].items, state.copy())
                again = self.run(group[0].items, state.join(once))
                state = state.join(again)
            else:
                state = state.join(self.run(group[0].items, state.copy()))
        return state

    def _event(self, event: Event, state: _State) -> None:
        if event.kind == "push":
            self._push(event, state)
        elif event.kind in ("acc", "fifo"):
            mxu = event.mxu if event.kind == "fifo" else self._own_index(event.ref)
            held = [push for push in state.held if _fits(push, None, mxu)]
            loads = event.register is not None and not (event.register is False and held)
            # A loop is run twice here; what `False` means is decided by its first pass.
            loads = self.loading.setdefault(event, loads)
            self.feeding[event] = frozenset(self._load(event, mxu, state) if loads else held)

    def _push(self, event: Event, state: _State) -> None:
        register = staged_register(event.register)
        for push in list(state.staged):
            same = staged_register(push.register) == register and push.mxu == event.mxu
            if same and register is not None and event.mxu is not UNKNOWN:
                del state.staged[push]
        state.staged[event] = True
        state.latest[register] = frozenset({event})

    def _load(self, event: Event, mxu: Value, state: _State) -> list[Event]:
        register = staged_register(event.register)
        fitting = [push for push in state.staged if _fits(push, register, mxu)]
        certain = [push for push in fitting if state.staged[push]]
        chosen = certain or fitting
        if len(chosen) == 1:
            del state.staged[chosen[0]]
        elif not chosen:
            known = (p for latest in state.latest.values() for p in latest)
            chosen = [push for push in known if _fits(push, register, mxu)]
        gone = {push for push in state.held if any(push.mxu == new.mxu for new in chosen)}
        kept = state.held - gone if len(chosen) == 1 else state.held
        state.held = kept | frozenset(chosen)
        return chosen

    def _own_index(self, ref: Ref | None) -> Value:
        allocation = ref.allocation if ref is not None else None
        if allocation is None or allocation.space != "pltpu.ACC" or allocation.index is None:
            return UNKNOWN
        index = self._module.constants.fold(allocation.index)
        return index if type(index) is int and 0 <= index < MXUS else UNKNOWN


def _fits(push: Event, register: int | None, mxu: Value) -> bool:
    pushed = staged_register(push.register)
    right_register = register is None or pushed is None or pushed == register
    right_mxu = mxu is UNKNOWN or push.mxu is UNKNOWN or push.mxu == mxu
    return right_register and right_mxu
