"""What stands for an accumulator ref while a kernel is traced: its place, which is static."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

SUBLANES = 8
LANES = 128
"""Rows and columns of a vector register (`num_sublanes`, `num_lanes`: jax/_src/tpu_info.py)."""


@jax.tree_util.register_static
@dataclass(frozen=True)
class Accumulator:
    """A ref in accumulator memory: `shape[:-1]` rows from `row` on of an MXU.

    It is static for jax, so it passes through `jit`, `scan` and `cond` and keeps its place. Loads
    and stores raise what jax raises as it lowers them (jax/_src/pallas/mosaic/lowering.py).
    """

    mxu: int
    row: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def rows(self) -> int:
        """How many rows of the MXU it takes."""
        return math.prod(self.shape[:-1])

    @property
    def at(self) -> _At:
        """`acc.at[...]`: a part of it."""
        return _At(self)

    def __getitem__(self, index: Any) -> Any:
        raise ValueError(
            "Loading from an accumulator is not supported. Use `matmul_pop` "
            "instead, which will additionally zero out the accumulator."
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ValueError("Storing into an accumulator is not supported.")


@dataclass(frozen=True)
class View:
    """A part of an accumulator, or a part of that; `index` as the user wrote it."""

    ref: Accumulator | View
    index: Any

    @property
    def at(self) -> _At:
        return _At(self)


@dataclass(frozen=True)
class _At:
    ref: Accumulator | View

    def __getitem__(self, index: Any) -> View:
        return View(self.ref, index)


@dataclass
class Space:
    """The accumulator memory of a core while its kernel is traced: rows in use per MXU."""

    mxus: int
    rows: int
    used: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.used = [0] * self.mxus

    def allocate(self, mxu: int, shape: tuple[int, ...], dtype: Any) -> Accumulator:
        """The next rows of the MXU, as `alloc_accumulator` of jax/_src/pallas/mosaic/lowering.py.

        Raises ValueError, in jax's words, where they are not there.
        """
        accumulator = Accumulator(mxu, self.used[mxu], tuple(shape), np.dtype(dtype))
        entries, base = accumulator.rows // SUBLANES, accumulator.row // SUBLANES
        if accumulator.row + accumulator.rows > self.rows:
            raise ValueError(
                "Accumulator space overflow while attempting to allocate ref of shape "
                f"{accumulator.shape} at offset {base} on MXU {mxu}. The shape requires {entries} "
                f"entries, but only {self.rows // SUBLANES - base} are available."
            )
        self.used[mxu] += accumulator.rows
        return accumulator
