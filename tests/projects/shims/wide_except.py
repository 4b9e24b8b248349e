import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

try:
    Params = pltpu.CompilerParams
except Exception:
    Params = pltpu.TPUCompilerParams

try:
    _load = pl.load
except:  # noqa: E722
    _load = None


def make(**kwargs):
    try:
        return pltpu.CompilerParams(**kwargs)
    except Exception:  # pylint: disable=broad-except
        return pltpu.TPUCompilerParams(**kwargs)


def kernel(x_ref, o_ref):
    o_ref[...] = _load(x_ref, (...,)) if _load is not None else x_ref[...]


def copy(x):
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=make()
    )(x)
