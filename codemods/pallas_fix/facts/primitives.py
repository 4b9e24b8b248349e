"""Calls that touch refs or the MXU: what each writes down."""

from __future__ import annotations

import ast

from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import OTHER, Address, Frame, Items, Known, Loaded, Ref, View
from pallas_fix.facts.walk import Handler, Walk

_BY_REF = {"pltpu.matmul_acc_lhs": 3, "pltpu.matmul_pop": 1}
_BY_ADDRESS = frozenset({"acc_addr", "mxu_index", "shape", "dtype"})


def _push(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    for part in expr.args[:1]:
        walker.eval(part, frame)
    register = walker.integer(argument(expr, 1, "staging_register"), frame)
    mxu = walker.integer(argument(expr, 2, "mxu_index"), frame)
    walker.emit("push", expr, None, register=register, mxu=mxu, call=expr)
    return OTHER


def _acc(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    given = argument(expr, 0, "acc") or argument(expr, None, "acc_addr")
    held = walker.eval(given, frame)
    lhs = argument(expr, 1, "lhs")
    walker.eval(lhs, frame)
    numbered = isinstance(held, Known) and len(expr.args) == 3
    if numbered or takes_address(expr, "pltpu.matmul_acc_lhs"):
        mxu = argument(expr, 2, "mxu_index")
        where = Address(held, walker.eval(mxu, frame) if mxu is not None else None)
        register = walker.integer(argument(expr, 3, "load_staged_rhs"), frame)
        walker.emit("acc", expr, None, how=where, value=lhs, register=register, call=expr)
        return OTHER
    register = walker.integer(argument(expr, 2, "load_staged_rhs"), frame)
    walker.emit("acc", expr, _ref(held), how=held, value=lhs, register=register, call=expr)
    return OTHER


def _fifo(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    lhs = argument(expr, 0, "lhs")
    walker.eval(lhs, frame)
    mxu = walker.integer(argument(expr, 1, "mxu_index"), frame)
    register = walker.integer(argument(expr, None, "load_staged_rhs"), frame)
    walker.emit("fifo", expr, None, value=lhs, register=register, mxu=mxu, call=expr)
    return OTHER


def _pop(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    given = argument(expr, 0, "acc") or argument(expr, None, "acc_addr")
    held = walker.eval(given, frame)
    if takes_address(expr, "pltpu.matmul_pop"):
        mxu = argument(expr, 3, "mxu_index")
        shape = argument(expr, 1, "shape")
        dimensions = _dimensions(walker.eval(shape, frame))
        written, rows = walker.constants.origin(shape), None
        if isinstance(written, ast.Tuple | ast.List) and written.elts:
            rows = walker.number(written.elts[0], walker.eval(written.elts[0], frame))
        where = Address(held, walker.eval(mxu, frame), dimensions, rows)
        walker.emit("pop", expr, None, how=where, call=expr)
        return OTHER
    walker.emit("pop", expr, _ref(held), how=held, call=expr)
    return OTHER


def _load(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "ref"), frame)
    ref = _ref(held)
    plain = isinstance(held, Ref) or (isinstance(held, View) and held.whole)
    whole = plain and len(expr.args) < 2 and not _masked(expr)
    if ref is not None:
        walker.emit("load", expr, ref, how=held, whole=whole, call=expr)
        return Loaded(ref, expr, whole)
    return OTHER


def _store(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "ref"), frame)
    value = argument(expr, 1, "val")
    walker.eval(value, frame)
    ref = _ref(held)
    if ref is not None:
        whole = not _masked(expr)
        walker.emit("store", expr, ref, how=held, value=value, whole=whole, call=expr)
    return OTHER


def takes_address(call: ast.Call, name: str) -> bool:
    """True for a call of `name` that is written for jax until 0.11.1.

    `matmul_acc_lhs(acc_addr, lhs, mxu_index, load_staged_rhs)` took four arguments by position
    and `matmul_pop(acc_addr, shape, dtype, mxu_index)` too; since 0.11.2 they are
    `matmul_acc_lhs(acc, lhs, load_staged_rhs)` and `matmul_pop(acc)`.
    """
    return len(call.args) > _BY_REF[name] or any(k.arg in _BY_ADDRESS for k in call.keywords)


def _dimensions(value: object) -> tuple[int | None, ...] | None:
    if not isinstance(value, Items) or value.open_front:
        return None
    numbers = [item.value if isinstance(item, Known) else None for item in value.items]
    return tuple(n if isinstance(n, int) else None for n in numbers)


def _masked(expr: ast.Call) -> bool:
    return any(keyword.arg == "mask" for keyword in expr.keywords)


def _wgmma(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc"), frame)
    for part in (*expr.args[1:], *(k.value for k in expr.keywords if k.arg != "acc")):
        operand = walker.eval(part, frame)
        if isinstance(operand, Ref | View):
            walker.emit("wgmma_operand", part, _ref(operand), how=operand, call=expr)
    walker.emit("wgmma", expr, _ref(held), how=held, call=expr)
    return OTHER


def _wgmma_load(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc"), frame)
    ref = _ref(held)
    walker.emit("wgmma_load", expr, ref, how=held, call=expr)
    return Loaded(ref, expr, True) if ref is not None else OTHER


def _wgmma_store(walker: Walk, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc_ref"), frame)
    value = argument(expr, 1, "val")
    walker.eval(value, frame)
    walker.emit("wgmma_store", expr, _ref(held), how=held, value=value, call=expr)
    return OTHER


def _ref(held: object) -> Ref | None:
    if isinstance(held, Ref):
        return held
    return held.ref if isinstance(held, View | Loaded) else None


PRIMITIVES: dict[str, Handler] = {
    "pltpu.matmul_push_rhs": _push,
    "pltpu.matmul_acc_lhs": _acc,
    "pltpu.matmul_pop": _pop,
    "pltpu.matmul_lhs_fifo": _fifo,
    "pltpu.load": _load,
    "plgpu.load": _load,
    "pl.load": _load,
    "pltpu.store": _store,
    "plgpu.wgmma": _wgmma,
    "plgpu.wgmma_accumulator_load": _wgmma_load,
    "plgpu.wgmma_accumulator_store": _wgmma_store,
}
