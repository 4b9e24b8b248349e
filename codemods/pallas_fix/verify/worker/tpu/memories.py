"""Accumulators of the file before a repair, as refs that can be read, stored to and indexed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import numpy as np

from .accumulators import Space
from .indexing import Index
from .values import Values

_serials = itertools.count()


class Access(Protocol):
    """How a memory is reached."""

    def load(self, part: Part) -> Any:
        """What a part holds."""

    def store(self, part: Part, value: Any) -> None:
        """Overwrite a part."""

    def enter(self, memory: Memory) -> None:
        """The scope of a memory begins."""


@jax.tree_util.register_static
@dataclass(frozen=True)
class Memory:
    """What its author takes for an accumulator: a ref of any shape and dtype.

    It is static for jax, so it passes through `jit`, `scan` and `cond`; `serial` tells it from
    the others. `mxu` is where its author puts it, None where that is not said or does not exist.
    """

    serial: int
    mxu: int | None
    declared: tuple[int, ...]
    dtype: np.dtype[Any]
    space: Memories = field(compare=False, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of what is summed in it, once that is known; before, as it was declared."""
        return self.space.shapes.get(self.serial, self.declared)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def at(self) -> _At:
        return _At(Part(self, ()))

    def __getitem__(self, index: Any) -> Any:
        return Part(self, ())[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        Part(self, ())[index] = value


@dataclass(frozen=True)
class Part:
    """A part of a memory, a part of that, ..."""

    memory: Memory
    chain: tuple[Any, ...]

    @property
    def index(self) -> Index:
        """Raises TypeError for an index that no ref takes."""
        return Index(self.chain)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.index.shape(self.memory.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.memory.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def at(self) -> _At:
        return _At(self)

    def __getitem__(self, index: Any) -> Any:
        return self.memory.space.access.load(Part(self.memory, (*self.chain, index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        self.memory.space.access.store(Part(self.memory, (*self.chain, index)), value)


@dataclass(frozen=True)
class _At:
    part: Part

    def __getitem__(self, index: Any) -> Part:
        return Part(self.part.memory, (*self.part.chain, index))


class Memories(Space):
    """What stands for the accumulator memory while a kernel is traced: there is always room.

    `values` knows the values of the kernel, `shapes` those of the sums in its memories.
    """

    def __init__(self, mxus: int, access: Access) -> None:
        super().__init__(mxus, 0)
        self.access = access
        self.values = Values()
        self.shapes: dict[int, tuple[int, ...]] = {}
        self._numbered: dict[int, tuple[Any, int]] = {}

    def allocate(self, mxu: int | None, shape: tuple[int, ...], dtype: Any) -> Memory:
        """A new memory, zero where its scope begins."""
        said = mxu if mxu is not None and 0 <= mxu < self.mxus else None
        dtype = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
        memory = Memory(next(_serials), said, tuple(shape), dtype, self)
        self.access.enter(memory)
        return memory

    def sums_have(self, memory: Memory, shape: tuple[int, ...]) -> None:
        """Sums in all of a memory have that shape. Raises ValueError if others have another."""
        if self.shapes.setdefault(memory.serial, shape) != shape:
            raise ValueError(
                f"The shape of the accumulator {memory.shape} does not match the sums of shape "
                f"{shape}."
            )

    def number(self, ref: Any) -> int:
        """The number of another ref of the kernel, which it has from then on."""
        return self._numbered.setdefault(id(ref), (ref, next(_serials)))[1]

    def is_numbered(self, ref: Any) -> bool:
        """True for a ref that something was accumulated into."""
        return id(ref) in self._numbered
