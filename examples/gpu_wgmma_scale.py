"""A scaled matrix product on Hopper: the accumulator of wgmma is read, scaled and stored back."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

M, N, K = 64, 128, 64
SCALE = 0.125


def scaled_matmul_kernel(a_gmem, b_gmem, out_gmem, a_smem, b_smem, out_smem, barrier):
    plgpu.copy_gmem_to_smem(a_gmem, a_smem, barrier)
    plgpu.copy_gmem_to_smem(b_gmem, b_smem, barrier)
    plgpu.barrier_wait(barrier)

    def accumulate(acc):
        plgpu.wgmma(acc, a_smem, b_smem)
        product = acc[...]
        acc[...] = product.reshape(N, M) * SCALE
        return acc[...]

    out_smem[...] = pl.run_scoped(accumulate, plgpu.ACC((M, N), jnp.float32))
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(out_smem, out_gmem)
    plgpu.wait_smem_to_gmem(0)


# pallas-fix: case scaled_matmul(f16[64,64], f16[64,128]) @ h100
def scaled_matmul(a, b):
    operand = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
    return plgpu.kernel(
        scaled_matmul_kernel,
        out_type=jax.ShapeDtypeStruct((M, N), jnp.float32),
        scratch_types=[
            plgpu.SMEM((M, K), jnp.float16, transforms=operand),
            plgpu.SMEM((K, N), jnp.float16, transforms=operand),
            plgpu.SMEM((M, N), jnp.float32),
            plgpu.Barrier(num_arrivals=2),
        ],
    )(a, b)
