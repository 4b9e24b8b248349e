"""A product of two matrices with the explicit MXU API of TPU7x."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, y_ref, o_ref):
    def scope(acc):
        pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
        pltpu.matmul_acc_lhs(acc, x_ref[...], load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(acc)

    pl.run_scoped(scope, pltpu.ACC(0)((64, 256), jnp.float32))


def matmul(x, y):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((64, 256), jnp.float32))(x, y)


def main():
    x = jnp.ones((64, 256), jnp.bfloat16)
    out = matmul(x, jnp.ones((256, 256), jnp.bfloat16))
    assert float(out[0, 0]) == 256
