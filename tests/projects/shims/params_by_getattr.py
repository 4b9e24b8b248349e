import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

CompilerParams = getattr(pltpu, "CompilerParams", None) or getattr(pltpu, "TPUCompilerParams")
MemorySpace = getattr(pltpu, "MemorySpace", getattr(pltpu, "TPUMemorySpace", None))
_repeat = getattr(pltpu, "repeat", None)
if _repeat is None:

    def _repeat(x, repeats, axis):
        return jnp.concatenate([x] * repeats, axis=axis)


ANY = pl.ANY if hasattr(pl, "ANY") else pltpu.ANY


def kernel(x_ref, o_ref):
    o_ref[...] = _repeat(x_ref[...], 2, axis=1)


def twice(x):
    m, n = x.shape
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, 2 * n), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=MemorySpace.VMEM)],
        compiler_params=CompilerParams(allow_input_fusion=[True]),
    )(x)
