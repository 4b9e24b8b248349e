"""The store into a WGMMA accumulator, which jax's GPU interpreter does not know (0.11.1 to 0.12).

`wgmma_accumulator_store`: jax/_src/pallas/mosaic_gpu/primitives.py, which `acc[...] = value` calls
by that name. `get_ref_and_transforms`, `swap_p`: jax/_src/state/primitives.py.
"""

from __future__ import annotations

from typing import Any

import jax
from jax._src.pallas.mosaic_gpu import primitives as gpu
from jax._src.state import primitives as state


def install() -> None:
    """Make the store a plain one, which the interpreter does know."""
    store = getattr(gpu, "wgmma_accumulator_store", None)
    if store is None:
        return

    def stand_in(acc: Any, value: Any) -> None:
        jax.eval_shape(lambda: store(acc, value))
        ref, transforms = state.get_ref_and_transforms(acc, None, "wgmma_accumulator_store")
        flat, tree = jax.tree.flatten(transforms)
        state.swap_p.bind(ref, value, *flat, tree=tree)

    gpu.wgmma_accumulator_store = stand_in
