"""Calls that run functions: conditions, loops, scopes, pipelines."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_fix.facts.allocations import Slot, argument
from pallas_fix.facts.constants import UNKNOWN
from pallas_fix.facts.launches import KINDS
from pallas_fix.facts.values import OTHER, Callee, Frame, GridTest, Items, Known, Program, Ref
from pallas_fix.facts.walk import Arguments, Handler, Pipeline, Runner, Walk


def _when(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    test = walker.eval(argument(expr, 0, "condition"), frame)

    def run(callee: Callee) -> object:
        if isinstance(test, Known) and test.value is not UNKNOWN:
            return walker.call(callee, (), {}) if test.value else OTHER
        with walker.inside("branch", expr, test if isinstance(test, GridTest) else None):
            walker.call(callee, (), {})
        return OTHER

    return Runner(run)


def _pl_loop(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    walker.arguments(expr, frame)

    def run(callee: Callee) -> object:
        with walker.inside("loop", expr):
            walker.call(callee, (OTHER,), {})
        return OTHER

    return Runner(run)


def _fori(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    body, carry = (given.get(2, "body_fun"), given.get(3, "init_val")) if given else (OTHER, OTHER)
    return _looped(walker, expr, body, (OTHER, carry), carry)


def _scan(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    body, carry = (given.get(0, "f"), given.get(1, "init")) if given else (OTHER, OTHER)
    return _looped(walker, expr, body, (carry, OTHER), OTHER)


def _while(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    if given is None:
        return OTHER
    carry = given.get(2, "init_val")
    _looped(walker, expr, given.get(0, "cond_fun"), (carry,), carry)
    return _looped(walker, expr, given.get(1, "body_fun"), (carry,), carry)


def _looped(
    walker: Walk, expr: ast.Call, body: object, args: tuple[object, ...], carry: object
) -> object:
    if isinstance(body, Callee):
        with walker.inside("loop", expr):
            walker.call(body, args, {})
    else:
        walker.escape(carry, expr)
    return carry if isinstance(carry, Ref | Items) else OTHER


def _cond(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    if given is None:
        return OTHER
    branches = [given.get(1, "true_fun"), given.get(2, "false_fun")]
    for index, branch in enumerate(branches):
        test = given.get(0, "pred") if index == 0 else None
        _branch(walker, expr, branch, given.positional[3:], test)
    return OTHER


def _switch(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    branches = given.get(1, "branches") if given else OTHER
    if given is not None and isinstance(branches, Items):
        for branch in branches.items:
            _branch(walker, expr, branch, given.positional[2:], None)
    return OTHER


def _branch(
    walker: Walk, expr: ast.Call, branch: object, args: Sequence[object], test: object
) -> None:
    if isinstance(branch, Callee):
        with walker.inside("branch", expr, test if isinstance(test, GridTest) else None):
            walker.call(branch, args, {})
    else:
        for value in args:
            walker.escape(value, expr)


def _types(
    walker: Walk, expr: ast.Call, first: int, frame: Frame | None
) -> tuple[tuple[object, ...], tuple[tuple[str, object], ...]]:
    """The refs that the types given to `run_scoped` or `with_scoped` stand for."""
    slots: list[Slot] = []
    for item in expr.args[first:]:
        if isinstance(item, ast.Starred):
            slots.extend(walker.allocations.slots(item.value) or ())
        else:
            slots.append(_slot(walker, item, expr, None, frame))
    keyed = [
        _slot(walker, k.value, expr, k.arg, frame)
        for k in expr.keywords
        if k.arg not in (None, "collective_axes", "f")
    ]
    positional = tuple(walker.scratch(s, None, "scoped") for s in slots)
    return positional, tuple((str(s.key), walker.scratch(s, None, "scoped")) for s in keyed)


def _slot(
    walker: Walk, item: ast.expr, call: ast.Call, key: str | None, frame: Frame | None
) -> Slot:
    slot = walker.allocations.slot(item, call, key)
    if slot.allocation is None and slot.children is None:
        held = walker.eval(item, frame)
        if isinstance(held, Slot):
            slot.allocation = held.allocation
    return slot


def _run_scoped(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    body = walker.eval(argument(expr, 0, "f"), frame)
    positional, keyed = _types(walker, expr, 1, frame)
    return walker.call(body, positional, dict(keyed)) if isinstance(body, Callee) else OTHER


def _with_scoped(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    positional, keyed = _types(walker, expr, 0, frame)

    def run(callee: Callee) -> object:
        return Callee(
            callee.node,
            callee.frame,
            callee.args,
            callee.kwargs,
            (*callee.scoped, *positional),
            (*callee.scoped_kwargs, *keyed),
        )

    return Runner(run)


def _run_state(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    body = walker.eval(argument(expr, 0, "f"), frame)
    if isinstance(body, Callee):
        return Callee(body.node, body.frame, body.args, body.kwargs, runs="state")
    return OTHER


def _partial(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    name = walker.names.qualified(expr.args[0]) if expr.args else None
    if name == "pl.run_scoped":
        positional, keyed = _types(walker, expr, 1, frame)
        return Runner(lambda callee: walker.call(callee, positional, dict(keyed)))
    if name == "lax.fori_loop":
        return Runner(lambda callee: _looped(walker, expr, callee, (OTHER, OTHER), OTHER))
    if name in KINDS or not expr.args:
        return OTHER
    inner = walker.eval(expr.args[0], frame)
    rest = ast.Call(expr.func, expr.args[1:], expr.keywords)
    given = walker.arguments(rest, frame)
    if not isinstance(inner, Callee) or given is None:
        for value in (*given.positional, *given.keywords.values()) if given else ():
            walker.escape(value, expr)
        return OTHER
    return Callee(
        inner.node,
        inner.frame,
        (*inner.args, *given.positional),
        (*inner.kwargs, *given.keywords.items()),
        inner.scoped,
        inner.scoped_kwargs,
        inner.runs,
    )


def _pipeline(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    body = walker.eval(argument(expr, 0, "body"), frame)
    if not isinstance(body, Callee):
        return OTHER

    def run(call: ast.Call, given: Arguments) -> object:
        extra = given.keywords.get("scratches")
        tail = extra.items if isinstance(extra, Items) else ()
        arguments = body.node.args
        count = len(arguments.posonlyargs) + len(arguments.args) - len(body.args) - len(tail)
        with walker.inside("loop", call):
            walker.call(body, (*[OTHER] * max(0, count), *tail), {})
        return OTHER

    return Pipeline(run)


def _program(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    axis = walker.integer(argument(expr, 0, "axis"), frame)
    count = walker.names.qualified(expr.func) == "pl.num_programs"
    return Program(axis, count) if isinstance(axis, int) else OTHER


CONTROL: dict[str, Handler] = {
    "pl.when": _when,
    "pl.loop": _pl_loop,
    "plgpu.nd_loop": _pl_loop,
    "pltpu.run_scoped": _run_scoped,
    "pl.run_scoped": _run_scoped,
    "pl.with_scoped": _with_scoped,
    "pl.run_state": _run_state,
    "functools.partial": _partial,
    "lax.fori_loop": _fori,
    "lax.scan": _scan,
    "lax.while_loop": _while,
    "lax.cond": _cond,
    "lax.switch": _switch,
    "pltpu.emit_pipeline": _pipeline,
    "plgpu.emit_pipeline": _pipeline,
    "plgpu.emit_pipeline_warp_specialized": _pipeline,
    "pl.program_id": _program,
    "pl.num_programs": _program,
}
