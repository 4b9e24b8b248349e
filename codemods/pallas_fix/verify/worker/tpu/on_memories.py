"""The operations on accumulators that are memories, see `memories.py`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp

from .arithmetic import Array, undefined
from .contents import Contents, Place, wide
from .kernel import Kernels
from .machine import Machine
from .memories import Memory, Part
from .products import product_for, same_but_ones
from .weights import Load

_Act = Callable[[Machine, Contents, Place, Array], Array | None]


class OnMemories:
    """Loads, stores, sums and pops of memories."""

    def __init__(self, kernels: Kernels, site: Callable[[], str]) -> None:
        self._kernels = kernels
        self._site = site

    def enter(self, memory: Memory) -> None:
        """The scope of a memory begins."""
        self._kernels.do(lambda machine: _contents(machine, memory).enter())

    def load(self, part: Part) -> Any:
        """What a part holds, in the dtype of the memory."""
        return self._take(part, lambda held, place: held.load(place, part.dtype))

    def pop(self, part: Part) -> Any:
        """As `load`; the part is zero then."""
        return self._take(part, lambda held, place: held.pop(place, part.dtype))

    def store(self, part: Part, value: Any) -> None:
        """Overwrite a part."""
        exact, site = part.memory.space.values.exact(value), self._site()
        value = jnp.asarray(value if exact is None else exact).astype(wide(part.dtype))
        place = _Static(part)

        def host(machine: Machine, new: Array, *traced: Array) -> None:
            held = _contents(machine, part.memory)
            if not held.store(place.at(traced), new):
                _report_other(machine, site)

        self._kernels.do(host, jnp.broadcast_to(value, part.shape), *place.traced)

    def accumulate(self, part: Part, lhs: Any, load: Load) -> None:
        """Add a product to a part. Raises ValueError where its shape is another one."""
        memory, site = part.memory, self._site()
        product_shape = (lhs.shape[0], self._kernels.chip.size)
        if not part.chain or part.index.is_whole(memory.shape):
            memory.space.sums_have(memory, product_shape)
        elif not same_but_ones(part.shape, product_shape):
            raise ValueError(
                f"The shape of the accumulator {part.shape} does not match the shape of the lhs "
                f"{lhs.shape}."
            )
        place = _Static(part)

        def host(machine: Machine, value: Array, *traced: Array) -> None:
            held = _contents(machine, memory)
            product = product_for(held, machine, value, load, memory.mxu, site)
            if not held.add(place.at(traced), product, site):
                _report_other(machine, site)

        self._kernels.do(host, lhs, *place.traced)

    def _take(self, part: Part, take: Callable[[Contents, Place], Array | None]) -> Any:
        site, dtype = self._site(), wide(part.dtype)
        place = _Static(part)
        result = jax.ShapeDtypeStruct(part.shape, dtype)

        def host(machine: Machine, *traced: Array) -> Array:
            values = take(_contents(machine, part.memory), place.at(traced))
            if values is None:
                _report_other(machine, site)
                return undefined(result.shape, dtype)
            return values

        exact = self._kernels.do(host, *place.traced, result=result)
        value = exact.astype(part.dtype)
        values = part.memory.space.values
        return values.loaded(values.rounded(value, exact), part, ...)


class _Static:
    """Where a part is, while the kernel is traced."""

    def __init__(self, part: Part) -> None:
        self._shape, self._index = part.memory.shape, part.index
        self.traced = tuple(map(jnp.asarray, self._index.traced))

    def at(self, traced: tuple[Array, ...]) -> Place:
        return Place(self._shape, self._index, traced)


def _contents(machine: Machine, memory: Memory) -> Contents:
    held = machine.kept.setdefault(memory.serial, Contents())
    assert isinstance(held, Contents)
    return held


def _report_other(machine: Machine, site: Hashable) -> None:
    machine.report("bad-shape", site, "the accumulator holds numbers of another shape or dtype")
