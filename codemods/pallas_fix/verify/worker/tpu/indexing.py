"""Indices of refs, split into what is known while a kernel is traced and what is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl

from .arithmetic import Array


@dataclass(frozen=True)
class _Traced:
    """A number that comes at run time, the `position`-th one, or the start of a `pl.ds`."""

    position: int
    size: int | None = None
    stride: int = 1


class Index:
    """The indices of a part, of a part of that, and so on: `ref.at[i].at[j][k]` has three.

    `traced` are the numbers that are known at run time alone. Raises TypeError for what no ref
    takes as index, and for arrays of indices.
    """

    def __init__(self, chain: tuple[Any, ...]) -> None:
        self.traced: list[Any] = []
        self._chain = tuple(
            tuple(map(self._entry, index if isinstance(index, tuple) else (index,)))
            for index in chain
        )

    def is_whole(self, shape: tuple[int, ...]) -> bool:
        """True if it surely names all of a ref of that shape."""
        return not self.traced and self.shape(shape) == shape

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the part of a ref of that shape. Raises IndexError outside of it."""
        return self.part(np.empty(shape, np.bool_), [0] * len(self.traced)).shape

    def part(self, array: Array, traced: list[Any]) -> Array:
        """A view of that part of an array; `traced` in the order of the attribute."""
        numbers = [int(number) for number in traced]
        for index in self._chain:
            plain = tuple(_plain(entry, numbers) for entry in index)
            array = array[plain if ... in plain else (*plain, ...)]
        return array

    def _entry(self, entry: Any) -> Any:
        if entry is None or entry is ... or isinstance(entry, int | np.integer | slice):
            return entry
        if isinstance(entry, pl.Slice):
            start = self._entry(entry.start)
            if isinstance(start, _Traced):
                return _Traced(start.position, entry.size, entry.stride)
            return slice(start, start + entry.size * entry.stride, entry.stride)
        if isinstance(entry, jax.Array | np.ndarray) and not entry.shape:
            self.traced.append(entry)
            return _Traced(len(self.traced) - 1)
        raise TypeError(f"a part of an accumulator is named by numbers and slices, not by {entry}")


def _plain(entry: Any, numbers: list[int]) -> Any:
    if not isinstance(entry, _Traced):
        return entry
    start = numbers[entry.position]
    if entry.size is None:
        return start
    return slice(start, start + entry.size * entry.stride, entry.stride)
