"""Accumulators of a shape that the MXU does not have.

An accumulator has 256 columns and a multiple of 8 rows on TPU7x, and as many rows as the left
operand; `matmul_acc_lhs` takes 2-d ones only (`check_accumulator_ref` in
jax/_src/pallas/mosaic/core.py, and primitives.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.edits import Edit
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.dtype import stored_in
from pallas_fix.rules.construction.extent import Extent, lhs_rows, ref_extent
from pallas_fix.rules.construction.listed import listed
from pallas_fix.rules.construction.trouble import Made, Repair, Trouble, view_node
from pallas_fix.rules.construction.units import without_units
from pallas_fix.rules.construction.written import COLUMNS, SUBLANES, write_shape
from pallas_fix.rules.mxu.acc_code import Writer

_USED = ("acc", "pop")


def wrong_shape(module: Facts, made: Sequence[Made]) -> Iterator[Trouble]:
    """Accumulators whose shape is known, as far as needed, and cannot work."""
    for one in made:
        dims = module.constants.shape(one.allocation.shape)
        if dims is None:
            continue
        node = one.allocation.node
        if len(dims) > 2:
            yield from _many_dimensions(module, one, dims)
            continue
        message = _wrong(dims)
        if message:
            yield Trouble(node, message, _repair(module, one, dims))
        elif dims[0] is not None:
            yield from _rows(module, one, dims)


def _wrong(dims: tuple[int | None, ...]) -> str:
    if len(dims) < 2:
        return f"an accumulator has 2 dimensions, and this one has {len(dims)}"
    rows, columns = dims
    if columns is not None and columns != COLUMNS:
        return f"an accumulator has {COLUMNS} columns, and this one has {columns}"
    if rows is not None and (rows <= 0 or rows % SUBLANES):
        return f"the rows of an accumulator are a multiple of {SUBLANES}, and this one has {rows}"
    return ""


def _rows(module: Facts, made: Made, dims: tuple[int | None, ...]) -> Iterator[Trouble]:
    """Right by itself, but not as many rows as the left operand has."""
    needed = _lhs(module, made)
    if needed is None or needed == dims[0]:
        return
    message = f"the accumulator has {dims[0]} rows, and the left operand has {needed}"
    wanted = _wanted(module, made)
    agrees = wanted is not None and wanted.dims[0] == needed
    reason = Reason(
        "rows-mismatch",
        f"which of {dims[0]} and {needed} rows is meant is open: the popped value has as many rows "
        "as the accumulator",
        f"allocate the accumulator with the rows of the left operand: ({needed}, {COLUMNS})",
    )
    yield Trouble(
        made.allocation.node, message, _reshaped(module, made, dims) if agrees else reason
    )


def _many_dimensions(module: Facts, made: Made, dims: tuple[int | None, ...]) -> Iterator[Trouble]:
    if not list(made.events(*_USED)):
        return
    node, shape = made.allocation.node, made.allocation.shape
    message = f"an accumulator has 2 dimensions, and this one has {len(dims)}"
    units = len(dims) - 2
    if all(dim == 1 for dim in dims[:units]) and shape is not None:
        yield Trouble(node, message, without_units(module, made, units))
    else:
        yield Trouble(node, message, listed(module, made, dims))


def _repair(module: Facts, made: Made, dims: tuple[int | None, ...]) -> Repair | Reason:
    wanted = _wanted(module, made)
    rows = _lhs(module, made)
    if wanted is not None and rows is not None and wanted.dims[0] != rows:
        return Reason(
            "rows-mismatch",
            f"the left operand has {rows} rows, and the popped value is stored where "
            f"{wanted.dims[0]} are",
            f"allocate it with as many rows as the left operand: ({rows}, {COLUMNS})",
        )
    return _reshaped(module, made, dims)


def _reshaped(module: Facts, made: Made, dims: tuple[int | None, ...]) -> Repair | Reason:
    """The shape of the place in which the popped value is stored whole, else of the operand."""
    wanted = _wanted(module, made)
    if wanted is not None:
        rows, columns = wanted.dims
    else:
        rows, columns = _lhs(module, made), dims[-1] if dims else None
        like = _like(module, made) if rows is None or columns != COLUMNS else None
        if like is not None:
            writer = Writer(module, made.allocation.node)
            edits = write_shape(module, made.allocation, f"{like}.shape", writer)
            return edits if isinstance(edits, Reason) else Repair(tuple(edits), certain=False)
    if rows is None or (wanted is None and columns != COLUMNS):
        return Reason(
            "shape-unknown",
            "the shape that is meant does not follow from the file: the popped value is not stored "
            "whole into a ref",
            f"allocate it as (rows of the left operand, {COLUMNS})",
        )
    if columns != COLUMNS or rows % SUBLANES or rows <= 0:
        return Reason(
            "shape",
            f"its value goes where a shape of {(rows, columns)} is, and no accumulator has that",
            f"tile the columns by {COLUMNS}, and pad the rows to a multiple of {SUBLANES} (16 for "
            "bf16 operands, 32 for 8-bit ones)",
        )
    written = _with_dims(module, made.allocation, dims, (rows, columns), wanted)
    if isinstance(written, Reason):
        return written
    return Repair(tuple(written), wanted is None or wanted.sure)


def _like(module: Facts, made: Made) -> str | None:
    """The name of a ref into which the popped value is stored whole, if the allocation sees it."""
    names, node = module.names, made.allocation.node
    found: set[str] = set()
    for trace, event in made.events("pop"):
        store = stored_in(module, trace, event)
        statement = store.node if store is not None and store.whole else None
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        name = target.value if isinstance(target, ast.Subscript) else None
        if not isinstance(name, ast.Name):
            return None
        there = names.lookup(name.id, names.scope(name))
        here = names.lookup(name.id, names.scope(node))
        if there is None or here is None or there[0] is not here[0]:
            return None
        found.add(name.id)
    return found.pop() if len(found) == 1 else None


def _wanted(module: Facts, made: Made) -> Extent | None:
    """The 2-d shape of the refs into which the popped value is stored whole."""
    found: list[Extent] = []
    for trace, event in made.events("pop", "load"):
        store = stored_in(module, trace, event)
        if store is None or not store.whole or store.ref is None:
            return None
        extent = ref_extent(module, trace, store.ref)
        if extent is None or len(extent.dims) != 2 or None in extent.dims:
            return None
        found.append(extent)
    same = len({extent.dims for extent in found}) == 1
    return found[0] if same else None


def _lhs(module: Facts, made: Made) -> int | None:
    """The rows of the left operands, where they are known and the same."""
    events = list(made.events("acc"))
    if any(view_node(event) is not None for _, event in events):
        return None
    rows = {lhs_rows(module, trace, event) for trace, event in events}
    return rows.pop() if len(rows) == 1 else None


def _with_dims(
    module: Facts,
    allocation: Allocation,
    dims: tuple[int | None, ...],
    wanted: tuple[int, int],
    extent: Extent | None,
) -> list[Edit] | Reason:
    """Write the wanted dimensions, keeping the expressions of those that are right."""
    writer = Writer(module, allocation.node)
    old = module.constants.origin(allocation.shape)
    parts = old.elts if isinstance(old, ast.Tuple | ast.List) else []
    texts = []
    for position, value in enumerate(wanted):
        back = position - len(wanted)
        kept = len(parts) == len(dims) >= -back and dims[back] == value
        text = writer.moved(parts[back]) if kept else None
        theirs = extent.exprs[position] if extent is not None else None
        if text is None and theirs is not None:
            text = writer.moved(theirs)
        texts.append(text or str(value))
    return write_shape(module, allocation, f"({', '.join(texts)})", writer)
