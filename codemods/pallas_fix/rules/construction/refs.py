"""Refs that are made by a function with which no accumulator can be made.

Mosaic lowers `jax.empty_ref` for accumulators, but not `jax.new_ref`, nor `pl.empty_ref_like`
which rests on it; and `jax.empty_ref(pltpu.ACC(i)(shape, dtype))` reads shape and dtype only
(jax/_src/pallas/mosaic/lowering.py, jax/_src/pallas/helpers.py, jax/_src/core.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.indexing import is_zero
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.trouble import Repair, Trouble
from pallas_fix.rules.mxu.acc_code import Writer

_NEW = frozenset({"jax.new_ref", "jax.ref.new_ref"})
_EMPTY = frozenset({"jax.empty_ref", "jax.ref.empty_ref"})
_LIKE = "pl.empty_ref_like"


def wrong_maker(module: Facts) -> Iterator[Trouble]:
    """Calls that are to make an accumulator, and do not."""
    for call in module.names.calls:
        name = module.names.qualified(call.func)
        if name in _NEW:
            space = module.allocations.space(argument(call, None, "memory_space"))
            if space is not None and space[0] == "pltpu.ACC":
                yield Trouble(
                    call,
                    f"`{module.source(call.func)}` cannot make an accumulator",
                    _from_value(module, call),
                )
        elif name in _EMPTY or name == _LIKE:
            given = argument(call, 0, "ty" if name in _EMPTY else "x")
            allocation = module.allocations.parse(given) if given is not None else None
            if allocation is not None and allocation.space == "pltpu.ACC":
                yield Trouble(call, _message(module, call, name), _from_type(module, call, given))


def _message(module: Facts, call: ast.Call, name: str | None) -> str:
    written = module.source(call.func)
    if name == _LIKE:
        return f"`{written}` cannot make an accumulator"
    return f"`{written}` takes the shape and dtype of a memory ref, but not its memory space"


def _from_value(module: Facts, call: ast.Call) -> Repair | Reason:
    """`jax.new_ref(zeros, ...)`: an accumulator starts at zero by itself."""
    value = argument(call, 0, "init_val")
    space = argument(call, None, "memory_space")
    origin = module.constants.origin(value)
    if not is_zero(origin, module.names):
        return Reason(
            "initial-value",
            "an accumulator starts at zero, and this one is to start with another value",
            "allocate it with jax.empty_ref, and add the value to what matmul_pop returns",
        )
    writer = Writer(module, call)
    struct = _struct(module, writer, origin)
    if struct is None or space is None:
        return _unclear()
    text = f"{_empty(writer)}({struct}, memory_space={writer.hole(space)})"
    return Repair((Replace(module.span(call), writer.code(text)), *writer.imports))


def _struct(module: Facts, writer: Writer, value: ast.expr | None) -> str | None:
    """`jax.ShapeDtypeStruct(...)` for an array of zeros."""
    cast: ast.expr | None = None
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="astype"), args=[cast, *_]):
            value = inner
    if not isinstance(value, ast.Call):
        return None
    name = (module.names.qualified(value.func) or "").rpartition(".")[2]
    like = argument(value, 0, "x" if name == "zeros_like" else "a")
    filled = name in ("full", "full_like")
    dtype = cast or argument(value, 2 if filled else 1, "dtype")
    if name in ("zeros_like", "full_like"):
        if not isinstance(like, ast.Name) or writer.moved(like) is None:
            return None
        shape: str | None = f"{like.id}.shape"
        kept = f"{like.id}.dtype"
    elif name in ("zeros", "full"):
        given = argument(value, 0, "shape")
        shape = writer.moved(given) if given is not None else None
        kept = writer.name("jnp.float32")
    else:
        return None
    shown = writer.moved(dtype) if dtype is not None else kept
    if shape is None or shown is None:
        return None
    return f"{writer.name('jax.ShapeDtypeStruct')}({shape}, {shown})"


def _from_type(module: Facts, call: ast.Call, given: ast.expr | None) -> Repair | Reason:
    """`pl.empty_ref_like(pltpu.ACC(i)(shape, dtype))` and `jax.empty_ref(pltpu.ACC(i)(...))`."""
    allocation = module.allocations.parse(given) if given is not None else None
    if allocation is None or allocation.shape is None or allocation.dtype is None:
        return _unclear()
    space = allocation.space_node
    if space is allocation.node or not isinstance(module.constants.origin(space), ast.Call):
        return Reason(
            "mxu-unknown",
            "the accumulator lacks the index of its MXU",
            "write pltpu.ACC(mxu_index)(shape, dtype)",
        )
    writer = Writer(module, call)
    shape, dtype = writer.moved(allocation.shape), writer.moved(allocation.dtype)
    where = writer.moved(space)
    if shape is None or dtype is None or where is None:
        return _unclear()
    struct = f"{writer.name('jax.ShapeDtypeStruct')}({shape}, {dtype})"
    text = f"{_empty(writer)}({struct}, memory_space={where})"
    return Repair((Replace(module.span(call), writer.code(text)), *writer.imports))


def _empty(writer: Writer) -> str:
    return writer.name("jax.empty_ref")


def _unclear() -> Reason:
    return Reason(
        "shape-unknown",
        "the shape or the dtype of the accumulator is not written where pallas-fix sees it",
        "write jax.empty_ref(jax.ShapeDtypeStruct(shape, jnp.float32), "
        "memory_space=pltpu.ACC(mxu_index))",
    )
