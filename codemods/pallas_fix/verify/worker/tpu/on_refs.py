"""The operations on accumulators that are other refs: in VMEM, SMEM, or of an operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .arithmetic import Array
from .contents import Beside, wide
from .kernel import Kernels
from .machine import Machine
from .memories import Memories
from .products import product_for, same_but_ones, total
from .weights import Load


class OnRefs:
    """Sums and pops of refs; `get` and `set` are those of `jax.ref`."""

    def __init__(
        self,
        kernels: Kernels,
        site: Callable[[], str],
        get: Callable[..., Any],
        put: Callable[..., Any],
    ) -> None:
        self._kernels = kernels
        self._site = site
        self._get = get
        self._put = put

    def accumulate(self, space: Memories, ref: Any, lhs: Any, load: Load) -> None:
        """Add a product to a ref. Raises ValueError where its shape is another one."""
        if not same_but_ones(ref.shape, (lhs.shape[0], self._kernels.chip.size)):
            raise ValueError(
                f"The shape of the accumulator {ref.shape} does not match the shape of the lhs "
                f"{lhs.shape}."
            )
        serial, site = space.number(ref), self._site()

        def host(machine: Machine, held: Array, value: Array) -> Array:
            beside = _beside(machine, serial)
            product = product_for(beside, machine, value, load, None, site)
            beside.array = total(beside.exact(held), product, machine, site)
            return beside.array.astype(held.dtype)

        old = self._get(ref, ...)
        result = jax.ShapeDtypeStruct(old.shape, old.dtype)
        self._put(ref, ..., self._kernels.do(host, old, lhs, result=result))

    def pop(self, space: Memories, ref: Any) -> Any:
        """What a ref holds; it is zero then."""
        value = self.load(space, ref)
        self._put(ref, ..., jnp.zeros_like(value))
        return value

    def load(self, space: Memories, ref: Any) -> Any:
        """What an accumulator holds, in the dtype of the ref."""
        serial = space.number(ref)

        def host(machine: Machine, held: Array) -> Array:
            return _beside(machine, serial).exact(held)

        old = self._get(ref, ...)
        exact = self._kernels.do(host, old, result=jax.ShapeDtypeStruct(old.shape, wide(old.dtype)))
        value = exact.astype(old.dtype)
        return space.values.rounded(value, exact)


def _beside(machine: Machine, serial: int) -> Beside:
    beside = machine.kept.setdefault(serial, Beside())
    assert isinstance(beside, Beside)
    return beside
