"""Allocations in a kernel: accumulators get rows of the emulated MXU, the rest stays with jax."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .accumulators import Space
from .kernel import Kernels


class Scopes:
    """Stand-ins for `pl.run_scoped` (which `pl.with_scoped` calls) and `jax.empty_ref`."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._run_scoped = pl.run_scoped
        self._empty_ref = jax.empty_ref

    def run_scoped(
        self, f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any
    ) -> Any:
        """Call `f` with the refs; accumulators are free again after it."""
        leaves, tree = jax.tree.flatten((types, kw_types))
        if not self._kernels.inside or not any(map(is_accumulator, leaves)):
            return self._run_scoped(f, *types, collective_axes=collective_axes, **kw_types)
        space = self._kernels.current.space
        used = list(space.used)
        accumulators = [allocate(space, leaf) for leaf in leaves]

        def call(*refs: Any) -> Any:
            others = iter(refs)
            values = [next(others) if one is None else one for one in accumulators]
            args, kwargs = jax.tree.unflatten(tree, values)
            return f(*args, **kwargs)

        others = [leaf for leaf in leaves if not is_accumulator(leaf)]
        try:
            if not others:
                return call()
            return self._run_scoped(call, *others, collective_axes=collective_axes)
        finally:
            space.used[:] = used

    def empty_ref(self, ty: Any, memory_space: Any = None, **kwargs: Any) -> Any:
        """A ref that lives as long as the kernel.

        jax's interpreter makes no ref of its own in a kernel that calls back, so that other
        memory is one more scratch ref.
        """
        accumulator = is_accumulator_space(memory_space) and self._kernels.inside
        if not accumulator and not self._kernels.emulating:
            return self._empty_ref(ty, memory_space=memory_space, **kwargs)
        kernel = self._kernels.current
        if accumulator:
            return allocate(kernel.space, memory_space(ty.shape, ty.dtype))
        return kernel.allocate((memory_space or pltpu.VMEM)(ty.shape, ty.dtype))


def is_accumulator_space(memory_space: Any) -> bool:
    """True for what `pltpu.ACC(...)` makes; jax has it since 0.11.2."""
    return hasattr(pltpu, "ACC") and isinstance(memory_space, pltpu.ACC)


def is_accumulator(kind: Any) -> bool:
    """True for the type of a ref in accumulator memory."""
    return is_accumulator_space(getattr(kind, "memory_space", None))


def allocate(space: Space, kind: Any) -> Any:
    """The accumulator of that type; None for other types."""
    if not is_accumulator(kind):
        return None
    return space.allocate(kind.memory_space.mxu_id, kind.shape, kind.dtype)


def without_accumulators(types: Any) -> Any:
    """A tree of types with None, which is an empty tree, in place of each accumulator."""
    return jax.tree.map(lambda kind: None if is_accumulator(kind) else kind, types)


def filled_in(types: Any, refs: Any, space: Space) -> Any:
    """The refs of `without_accumulators(types)`, with accumulators where they are missing."""
    if is_accumulator(types):
        return allocate(space, types)
    if isinstance(types, Mapping):
        return {name: filled_in(kind, refs[name], space) for name, kind in types.items()}
    if isinstance(types, list | tuple):
        pairs = zip(types, refs, strict=True)
        return type(types)([filled_in(kind, ref, space) for kind, ref in pairs])
    return refs
