"""Accumulators of a dtype that the MXU does not accumulate in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation
from pallas_fix.facts.values import Event, Ref, Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.extent import ref_extent
from pallas_fix.rules.construction.trouble import Made, Repair, Trouble, shared_code
from pallas_fix.rules.mxu.acc_code import ACC_DTYPES, Writer

_FLOATS = ("float", "bfloat")
_BUILTIN = {"float": "float32", "int": "int32"}


def wrong_dtype(module: Facts, made: Sequence[Made]) -> Iterator[Trouble]:
    """Accumulators whose dtype is known and is not float32 or int32."""
    for one in made:
        expr = one.allocation.dtype
        if expr is None:
            continue
        found = _dtype(module, one, expr)
        if found is None:
            continue
        dtype, plain = found
        if dtype in ACC_DTYPES and plain:
            continue
        shown = module.source(expr)
        message = f"an accumulator is float32 or int32, and this one is `{shown}`"
        yield Trouble(one.allocation.node, message, _repair(module, one, dtype))


def stored_in(module: Facts, trace: Trace, event: Event) -> Event | None:
    """The store that takes a popped or loaded value as it is, but for a cast."""
    value = event.node
    parent = module.names.parent[value]
    while isinstance(parent, ast.Attribute) and parent.attr == "astype":
        value = module.names.parent[parent]
        parent = module.names.parent[value]
    if not isinstance(parent, ast.Assign) or parent.value is not value:
        return None
    for store in trace.root.events():
        if store.kind == "store" and store.node is parent and store.ref is not None:
            return store
    return None


def _dtype(module: Facts, made: Made, expr: ast.expr) -> tuple[str, bool] | None:
    """The dtype, and whether jax takes it in this spelling (a string it does not)."""
    known = module.constants.dtype(expr)
    if known is not None:
        return known, not isinstance(module.constants.fold(expr), str)
    match expr:
        case ast.Name(id=name) if name in _BUILTIN:
            own = module.names.lookup(name, module.names.scope(expr))
            return (_BUILTIN[name], False) if own is None else None
        case ast.Attribute(value=ast.Name(id=name), attr="dtype"):
            return _dtype_of(module, made, name)
        case _:
            return None


def _dtype_of(module: Facts, made: Made, name: str) -> tuple[str, bool] | None:
    """The dtype of the operand that the kernel calls `name`."""
    found: set[str | None] = set()
    for trace, _ in made.refs:
        for ref in trace.refs:
            if ref.name == name and ref.kind == "operand":
                extent = ref_extent(module, trace, ref)
                found.add(extent.dtype if extent is not None and extent.sure else None)
    dtype = found.pop() if len(found) == 1 else None
    return (dtype, True) if dtype is not None else None


def _repair(module: Facts, made: Made, dtype: str) -> Repair | Reason:
    wanted = dtype if dtype in ACC_DTYPES else "float32"
    if dtype not in ACC_DTYPES and not dtype.startswith(_FLOATS):
        return Reason(
            "dtype",
            f"sums of {dtype} have no accumulator",
            "accumulate in jnp.int32 or jnp.float32, and cast the popped value",
        )
    written = _in_place(module, made.allocation, f"jnp.{wanted}")
    if isinstance(written, Reason):
        return written
    edits: list[Edit] = list(written)
    if dtype not in ACC_DTYPES:
        casts = dict(_casts(module, made, dtype))
        reason = shared_code(module, made, casts)
        if reason is not None:
            return reason
        for cast in casts.values():
            edits.extend(cast)
    return Repair(tuple(edits))


def _in_place(module: Facts, allocation: Allocation, dtype: str) -> list[Edit] | Reason:
    """Give the allocation another dtype, where only it reads the expression."""
    node, expr = allocation.node, allocation.dtype
    writer = Writer(module, node)
    if expr is not None and module.within(node, expr):
        edit = Replace(module.span(expr), Code(writer.name(dtype)))
        return [edit, *writer.imports]
    shape = writer.moved(allocation.shape) if allocation.shape is not None else None
    struct = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if shape is None or struct is None:
        return Reason(
            "shared-struct",
            "the dtype is written in an expression that others use too",
            "give the accumulator a jax.ShapeDtypeStruct of its own, with jnp.float32",
        )
    text = f"{writer.name('jax.ShapeDtypeStruct')}({shape}, {writer.name(dtype)})"
    return [Replace(module.span(struct), writer.code(text)), *writer.imports]


def _casts(module: Facts, made: Made, dtype: str) -> Iterator[tuple[ast.AST, list[Edit]]]:
    """Bring each value that leaves the accumulator to the dtype that its author expects."""
    done: set[ast.AST] = set()
    for trace, event in made.events("pop", "load"):
        node = event.node
        parent = module.names.parent[node]
        already = isinstance(parent, ast.Attribute) and parent.attr == "astype"
        if node in done or already or not isinstance(event.how, Ref):
            continue
        done.add(node)
        store = stored_in(module, trace, event)
        if store is not None and store.ref is not None:
            target = ref_extent(module, trace, store.ref)
            if target is not None and target.dtype == "float32" and target.sure:
                continue
        writer = Writer(module, node)
        cast = writer.cast(store.node if store is not None else None, dtype)
        edit = Replace(module.span(node), writer.code(f"{writer.hole(node)}{cast}"))
        yield node, [edit, *writer.imports]
