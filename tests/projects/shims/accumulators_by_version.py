import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ADDRESSED = jax.__version_info__ < (0, 11, 2)


def kernel(x_ref, y_ref, o_ref, *acc):
    pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
    if ADDRESSED:
        pltpu.matmul_acc_lhs(0, x_ref[...], mxu_index=0, load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(0, (128, 256), jnp.float32, mxu_index=0)
    else:
        pltpu.matmul_acc_lhs(acc[0], x_ref[...], mxu_index=0, load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(acc[0])


def matmul(x, y):
    scratch = [] if ADDRESSED else [pltpu.ACC((128, 256), jnp.float32)]
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((128, 256), jnp.float32),
        scratch_shapes=scratch,
    )(x, y)
