"""What accumulators hold, on the host, where their author uses them as no MXU allows.

An accumulator of the file before a repair may be read twice, stored to, indexed, or made with a
shape or dtype that the MXU has not. So it is an array here, of float32 or int32.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from .arithmetic import Array, is_whole
from .hazards import Hazards
from .indexing import Index

FLOAT = np.dtype(np.float32)
WHOLE = np.dtype(np.int32)


def wide(dtype: Any) -> np.dtype[Any]:
    """The dtype in which numbers of that dtype are summed."""
    return WHOLE if is_whole(np.dtype(dtype)) else FLOAT


@dataclass(frozen=True)
class Place:
    """A part of an accumulator of that shape; `traced` are the numbers of the index."""

    shape: tuple[int, ...]
    index: Index
    traced: tuple[Any, ...]

    @property
    def part(self) -> tuple[int, ...]:
        """The shape of the part."""
        return self.index.shape(self.shape)

    def of(self, array: Array) -> Array:
        """A view of that part."""
        return self.index.part(array, list(self.traced))


@dataclass
class Contents:
    """What one accumulator holds, zeros at first. Zeros have any shape and dtype.

    `mxu` is where its last sum was made, `site` where a sum was added that nobody has read since.
    """

    array: Array | None = None
    mxu: int | None = None
    site: Hashable = None
    was_read: bool = False

    def enter(self) -> None:
        """Its scope begins: what was read is gone, a sum that nobody has read is still there."""
        if self.was_read:
            self.array, self.was_read = None, False

    def add(self, place: Place, values: Array, site: Hashable) -> bool:
        """Add to a part; False if it holds something else."""
        array = self._shaped(place.shape, values.dtype)
        if array is None:
            return False
        part = place.of(array)
        with np.errstate(all="ignore"):
            part += values.reshape(part.shape)
        self.site, self.was_read = site, False
        return True

    def store(self, place: Place, values: Array) -> bool:
        """Overwrite a part; False if it holds something else."""
        array = self._shaped(place.shape, values.dtype)
        if array is None:
            return False
        place.of(array)[...] = values
        self.site, self.was_read = None, False
        return True

    def load(self, place: Place, dtype: Any) -> Array | None:
        """A part, in the dtype of the sums; None if it holds something else."""
        array = self._shaped(place.shape, dtype)
        if array is None:
            return None
        self.site, self.was_read = None, True
        return place.of(array).copy()

    def pop(self, place: Place, dtype: Any) -> Array | None:
        """A part, which is zero then."""
        values = self.load(place, dtype)
        if values is not None:
            self.store(place, np.zeros_like(values))
        return values

    def tell_left(self, hazards: Hazards) -> None:
        """Add what a kernel leaves behind if it ends now."""
        if self.site is not None:
            hazards.add("acc-at-exit", self.site, "an accumulator holds a sum that is never read")

    def _shaped(self, shape: tuple[int, ...], dtype: Any) -> Array | None:
        array = self.array
        if array is None or not array.any():
            self.array = array = np.zeros(shape, wide(dtype))
        return array if array.shape == shape and array.dtype == wide(dtype) else None


@dataclass
class Beside:
    """The sum that a ref of a narrow dtype stands for, as its author sees it: in float32.

    `array` is that sum, as long as the ref holds it rounded.
    """

    array: Array | None = None
    mxu: int | None = None

    def exact(self, held: Array) -> Array:
        """What the ref stands for when it holds that: the sum, or what was stored since."""
        stored = started(held)
        if self.array is None or self.array.shape != stored.shape:
            return stored
        with np.errstate(all="ignore"):
            rounded = self.array.astype(held.dtype)
        same = (_bits(rounded) == _bits(held)) & (held != 0)
        return np.where(same, self.array, stored)

    def tell_left(self, hazards: Hazards) -> None:
        """A ref in memory is left as it is."""


def started(held: Array) -> Array:
    """What a ref holds, in the dtype of the sums; zeros in rows that nothing was written to.

    The interpreter fills memory with NaN or the largest integer (`get_uninitialized_value` in
    jax/_src/pallas/mosaic/interpret/utils.py).
    """
    values = held.astype(wide(held.dtype))
    whole = is_whole(held.dtype)
    poison = values == jnp.iinfo(held.dtype).max if whole else np.isnan(values)
    untouched = poison.all(axis=-1, keepdims=True) if values.ndim else poison
    return np.where(untouched, np.zeros_like(values), values)


def _bits(array: Array) -> Array:
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))
