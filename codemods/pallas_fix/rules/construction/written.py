"""Writing another shape where an accumulator is allocated."""

from __future__ import annotations

import ast

from pallas_fix.edits import Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer

COLUMNS = 256
"""Columns of an accumulator (`mxu_column_size` of TPU7x in jax/_src/pallas/mosaic/tpu_info.py)."""

SUBLANES = 8
"""Its rows are a multiple of this (`num_sublanes` of TPU7x, there too)."""


def last_dimensions(
    module: Facts, writer: Writer, allocation: Allocation, first: int
) -> list[str] | Reason:
    """The text of the dimensions of an allocation from `first` on."""
    dims = module.constants.shape(allocation.shape) or ()
    old = module.constants.origin(allocation.shape)
    texts: list[str] = []
    if isinstance(old, ast.Tuple | ast.List):
        texts = [text for e in old.elts[first:] if (text := writer.moved(e)) is not None]
    if len(texts) != len(dims) - first:
        texts = [str(dim) for dim in dims[first:] if dim is not None]
    if len(texts) != len(dims) - first:
        return Reason(
            "shape-unknown",
            "its shape is not written where pallas-fix can change it",
            f"allocate it as (rows of the left operand, {COLUMNS})",
        )
    return texts


def write_shape(
    module: Facts, allocation: Allocation, shape: str, writer: Writer
) -> list[Edit] | Reason:
    """Give an allocation another shape, and leave alone what others share with it."""
    node, old = allocation.node, allocation.shape
    if old is not None and module.within(node, old):
        return [Replace(module.span(old), writer.code(shape)), *writer.imports]
    struct = node.args[0] if isinstance(node, ast.Call) and node.args else None
    dtype = writer.moved(allocation.dtype) if allocation.dtype is not None else None
    if struct is None or dtype is None:
        return Reason(
            "shared-struct",
            "the shape is written in an expression that others use too",
            "give the accumulator a jax.ShapeDtypeStruct of its own",
        )
    made = f"{writer.name('jax.ShapeDtypeStruct')}({shape}, {dtype})"
    return [Replace(module.span(struct), writer.code(made)), *writer.imports]
