"""The numbers of a matrix unit: products, and what stands for a number that is not defined.

A row of a product depends on that row and on the weights alone, to the bit, so that a kernel which
cuts its rows in another way gets the same numbers. Therefore every product is made of blocks of
one shape: a BLAS sums in an order that depends on the shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_BLOCK = 8
"""Rows of a block: the sublanes of a register of a TPU."""

_EXACT_BITS = 16
"""Integers up to this width have exact products, and sums of them, in float64."""


def is_whole(dtype: np.dtype[Any]) -> bool:
    """True for integers. Those of ml_dtypes (int4) have no numpy kind, but a name."""
    return dtype.name.startswith(("int", "uint"))


def product(lhs: Array, rhs: Array) -> Array:
    """`lhs @ rhs` of two matrices: float32, rounded once from float64, or exact int32.

    Both are of floats, or both are of integers. What does not fit into int32 wraps.
    """
    whole = is_whole(lhs.dtype)
    wide = np.int64 if whole and max(_bits(lhs), _bits(rhs)) > _EXACT_BITS else np.float64
    rows, depth = lhs.shape
    blocks = np.zeros((-(-rows // _BLOCK), _BLOCK, depth), wide)
    blocks.reshape(-1, depth)[:rows] = lhs.astype(wide)
    with np.errstate(all="ignore"):
        summed = np.matmul(blocks, np.ascontiguousarray(rhs.astype(wide)))
        summed = summed.reshape(-1, rhs.shape[1])[:rows]
        return summed.astype(np.int64).astype(np.int32) if whole else summed.astype(np.float32)


def undefined(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """What stands for numbers that nobody can know: NaN, or the least integer."""
    if is_whole(dtype):
        return np.full(shape, np.iinfo(np.int32).min, np.int32).astype(dtype)
    return np.full(shape, np.nan, np.float32).astype(dtype)


def _bits(array: Array) -> int:
    return 8 * array.dtype.itemsize
