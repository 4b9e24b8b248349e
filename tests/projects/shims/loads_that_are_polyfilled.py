"""Kernels from 2023 on today's jax: what is gone is put back."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def _load(ref, idx, *, mask=None, other=None, **_):
    value = ref[idx]
    return value if mask is None else jnp.where(mask, value, other)


def _store(ref, idx, val, *, mask=None, **_):
    ref[idx] = val if mask is None else jnp.where(mask, val, ref[idx])


def _swap(ref, idx, val, **_):
    old = ref[idx]
    ref[idx] = val
    return old


for _name, _function in {"load": _load, "store": _store, "swap": _swap}.items():
    if not hasattr(pl, _name):
        setattr(pl, _name, _function)


def softmax_kernel(x_ref, o_ref):
    row = pl.program_id(0)
    x = pl.load(x_ref, (row, slice(None)))
    e = jnp.exp(x - jnp.max(x))
    pl.store(o_ref, (row, slice(None)), e / jnp.sum(e))
    pl.swap(o_ref, (row, pl.ds(0, 8)), pl.load(o_ref, (row, pl.ds(0, 8))))


def softmax(x):
    return pl.pallas_call(
        softmax_kernel,
        grid=(x.shape[0],),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
