import jax
from jax.experimental import pallas as pl

try:
    from jax.experimental.pallas.tpu import CompilerParams
except ImportError:
    from jax.experimental.pallas import tpu as pltpu

    CompilerParams = pltpu.TPUCompilerParams

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

try:
    from jax.core import ShapedArray
except ImportError:
    import jax._src.core

    ShapedArray = jax._src.core.ShapedArray


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def copy(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=CompilerParams(vmem_limit_bytes=1 << 20),
    )(x)


def copies(mesh, spec):
    return shard_map(copy, mesh=mesh, in_specs=spec, out_specs=spec, check_rep=False)
