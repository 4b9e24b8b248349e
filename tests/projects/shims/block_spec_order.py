"""The order of BlockSpec's arguments changed in jax 0.4.31."""

import inspect

import jax
from jax.experimental import pallas as pl

_SHAPE_FIRST = list(inspect.signature(pl.BlockSpec).parameters)[0] == "block_shape"


def block_spec(block_shape, index_map):
    if _SHAPE_FIRST:
        return pl.BlockSpec(block_shape, index_map)
    return pl.BlockSpec(index_map, block_shape)


def rows(n):
    if _SHAPE_FIRST:
        spec = pl.BlockSpec((n, 128), lambda i: (i, 0))
    else:
        spec = pl.BlockSpec(lambda i: (i, 0), (n, 128))
    return spec


def copy_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def copy(x):
    return pl.pallas_call(
        copy_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 8,),
        in_specs=[block_spec((8, 128), lambda i: (i, 0))],
        out_specs=rows(8),
    )(x)
