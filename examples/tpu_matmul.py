"""A matrix product on the MXU of a TPU7x, written with the explicit MXU primitives."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BLOCK_M = 32
K = 256
N = 256


def matmul_kernel(x_ref, y_ref, out_ref, acc_ref):
    # The weights go to staging register 0 of MXU 0, the products into its accumulator.
    pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
    pltpu.matmul_acc_lhs(acc_ref, x_ref[...], load_staged_rhs=0)
    out_ref[...] = pltpu.matmul_pop(acc_ref)


# pallas-fix: case matmul(bf16[64,256], bf16[256,256]) @ tpu7x
def matmul(x, y):
    return pl.pallas_call(
        matmul_kernel,
        grid=(x.shape[0] // BLOCK_M,),
        in_specs=[
            pl.BlockSpec((BLOCK_M, K), lambda i: (i, 0)),
            pl.BlockSpec((K, N), lambda i: (0, 0)),
        ],
        out_specs=pl.BlockSpec((BLOCK_M, N), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], N), jnp.float32),
        scratch_shapes=[pltpu.VMEM((BLOCK_M, N), jnp.float32)],
    )(x, y)
