"""Staging registers that are no integers: `load_staged_rhs=True`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import Address, Event
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.trouble import Repair, Trouble
from pallas_fix.rules.mxu.index import staged_feeds, staged_register

_SIMPLE = (ast.Compare, ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BoolOp)


def wrong_register(module: Facts) -> Iterator[Trouble]:
    """Matmuls that are told to load staged weights by a bool, a string or a float."""
    calls: dict[ast.Call, dict[Event, int | None]] = {}
    for trace in module.traces:
        events = list(trace.root.events())
        if not any(_is_wrong(event) for event in events):
            continue
        feeding = staged_feeds(module, trace)
        for event in events:
            if event.kind in ("acc", "fifo") and event.call is not None:
                registers = {staged_register(push.register) for push in feeding.get(event, ())}
                register = registers.pop() if len(registers) == 1 else None
                if event.register is not None and not isinstance(event.register, bool):
                    register = staged_register(event.register)
                calls.setdefault(event.call, {})[event] = register
    for call, registers_of in calls.items():
        if any(_is_wrong(event, register) for event, register in registers_of.items()):
            yield _trouble(module, call, registers_of)


def _is_wrong(event: Event, register: int | None = None) -> bool:
    """True for a register that jax refuses, or takes for another one than is staged.

    To `matmul_lhs_fifo` a bool is an integer: True is register 1 and False register 0.
    """
    if isinstance(event.how, Address):
        return False
    if event.kind == "fifo" and isinstance(event.register, bool):
        return event.register is True and register != 1
    return event.kind in ("acc", "fifo") and isinstance(event.register, bool | str | float)


def _trouble(module: Facts, call: ast.Call, registers: dict[Event, int | None]) -> Trouble:
    position = 2 if any(event.kind == "acc" for event in registers) else None
    given = argument(call, position, "load_staged_rhs")
    shown = module.source(given) if given is not None else ""
    message = f"`load_staged_rhs` is a staging register or None, not `{shown}`"
    return Trouble(call, message, _repair(module, given, registers))


def _repair(
    module: Facts, given: ast.expr | None, registers: dict[Event, int | None]
) -> Repair | Reason:
    loading = {r for e, r in registers.items() if e.register is not False or r is not None}
    staying = any(e.register is False and r is None for e, r in registers.items())
    if given is None or None in loading or len(loading) > 1 or not (loading or staying):
        return Reason(
            "register-unknown",
            "which staging register is meant is not certain: no single matmul_push_rhs before it "
            "stages the weights",
            "write the staging_register of the matmul_push_rhs whose weights are loaded, or None",
        )
    register = next(iter(loading), None)
    # The result FIFO takes a bool for a number, so that such a kernel may have run.
    certain = not any(
        (e.register is False and r is not None) or (e.kind == "fifo" and e.register is True)
        for e, r in registers.items()
    )
    span = module.span(given)
    if not staying:
        return Repair((Replace(span, Code(str(register))),), certain)
    if register is None:
        return Repair((Replace(span, Code("None")),), certain)
    test = "$test" if isinstance(given, _SIMPLE) else "($test)"
    code = Code(f"{register} if {test} else None", {"test": span})
    return Repair((Replace(span, code),), certain)
