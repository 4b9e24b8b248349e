"""A matrix product on the MXU of a TPU7x."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from . import blocks


def _kernel(x_ref, y_ref, out_ref, acc_ref):
    pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
    pltpu.matmul_acc_lhs(acc_ref, x_ref[...], load_staged_rhs=0)
    out_ref[...] = pltpu.matmul_pop(acc_ref)


@functools.partial(jax.jit, static_argnames=("block",))
def matmul(x, y, block=32):
    """The product of (n, 256) and (256, 256) in float32."""
    rows, depth = x.shape
    return pl.pallas_call(
        _kernel,
        grid=(rows // block,),
        in_specs=[blocks.rows(block, depth), blocks.whole(depth, y.shape[1])],
        out_specs=blocks.rows(block, y.shape[1]),
        out_shape=jax.ShapeDtypeStruct((rows, y.shape[1]), jnp.float32),
        scratch_shapes=[pltpu.VMEM((block, y.shape[1]), jnp.float32)],
    )(x, y)
