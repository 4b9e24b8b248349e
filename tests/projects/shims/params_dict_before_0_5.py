import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

jax_minor = int(jax.__version__.split(".")[1])

if jax_minor >= 7:
    from jax.experimental.pallas import tpu as pltpu

    params = pltpu.CompilerParams(dimension_semantics=("parallel",))
elif jax_minor >= 5:
    from jax.experimental.pallas import tpu as pltpu

    params = pltpu.TPUCompilerParams(dimension_semantics=("parallel",))
else:
    params = dict(mosaic=dict(dimension_semantics=("parallel",)))


def double_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def double(x):
    return pl.pallas_call(
        double_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        compiler_params=params,
    )(x)
