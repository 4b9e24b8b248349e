"""Masked loads on jax before and after 0.9, which has no pl.load."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

HAS_LOAD = hasattr(pl, "load") and hasattr(pl, "store")


def read(ref, index, mask=None, other=None):
    if HAS_LOAD:
        return pl.load(ref, index, mask=mask, other=other)
    value = ref[index]
    return value if mask is None else jnp.where(mask, value, other)


def write(ref, index, value, mask=None):
    if not HAS_LOAD:
        ref[index] = value if mask is None else jnp.where(mask, value, ref[index])
    else:
        pl.store(ref, index, value, mask=mask)


def add_kernel(x_ref, y_ref, o_ref):
    block = pl.ds(pl.program_id(0) * 8, 8)
    index = (block, slice(None))
    write(o_ref, index, read(x_ref, index) + read(y_ref, index))


def add(x, y):
    return pl.pallas_call(
        add_kernel,
        grid=(x.shape[0] // 8,),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x, y)
