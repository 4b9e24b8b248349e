"""Two kernels that jax 0.12 compiles: texts, for the worker imports them and the tests do not."""

from __future__ import annotations

MXU = """\
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
"""
"""A product of two matrices with the explicit MXU API of TPU7x."""

WGMMA = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

M, N, K = 64, 128, 64
TILES = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))


def kernel(a_ref, b_ref, o_ref, a_smem, b_smem, o_smem, barrier):
    plgpu.copy_gmem_to_smem(a_ref, a_smem, barrier)
    plgpu.copy_gmem_to_smem(b_ref, b_smem, barrier)
    plgpu.barrier_wait(barrier)

    def scope(acc):
        plgpu.wgmma(acc, a_smem, b_smem)
        return acc[...]

    o_smem[...] = pl.run_scoped(scope, plgpu.ACC((M, N), jnp.float32)).astype(jnp.float16)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(o_smem, o_ref)
    plgpu.wait_smem_to_gmem(0)


def matmul(a, b):
    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((M, N), jnp.float16),
        scratch_types=[
            plgpu.SMEM((M, K), jnp.float16, transforms=TILES),
            plgpu.SMEM((K, N), jnp.float16, transforms=TILES),
            plgpu.SMEM((M, N), jnp.float16, transforms=TILES),
            plgpu.Barrier(num_arrivals=2),
        ],
    )(a, b)
"""
"""A product of two matrices with the tensor cores of Hopper."""
