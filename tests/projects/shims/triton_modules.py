import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

if jax.__version_info__ >= (0, 4, 36):
    from jax.experimental.pallas import triton as plgpu
else:
    from jax.experimental.pallas import gpu as plgpu

if hasattr(plgpu, "CompilerParams"):
    params = plgpu.CompilerParams(num_warps=4, num_stages=2)
elif hasattr(plgpu, "TritonCompilerParams"):
    params = plgpu.TritonCompilerParams(num_warps=4, num_stages=2)
else:
    params = dict(triton=dict(num_warps=4, num_stages=2))


def kernel(x_ref, o_ref):
    mask = jnp.arange(128) < 100
    if hasattr(plgpu, "load"):
        x = plgpu.load(x_ref.at[:], mask=mask, other=0.0)
        plgpu.store(o_ref.at[:], x, mask=mask)
    else:
        x = pl.load(x_ref, (slice(None),), mask=mask, other=0.0)
        pl.store(o_ref, (slice(None),), x, mask=mask)


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=params,
    )(x)
