from importlib import metadata

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

try:
    _installed = metadata.version("jax")
except metadata.PackageNotFoundError:
    _installed = "0.0"

_at = [int(part) for part in _installed.split(".")[:2]]


def bitcast(x, dtype):
    return pltpu.bitcast(x, dtype)


def dot(x, y, transposed=False):
    if _at < [0, 9]:
        return pl.dot(x, y, trans_b=transposed)
    return jnp.dot(x, y.T if transposed else y)


def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = dot(x_ref[...], y_ref[...])


def run(x, y):
    shape = jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), x.dtype)
    if _at >= [0, 7]:
        params = pltpu.CompilerParams()
    else:
        params = pltpu.TPUCompilerParams()
    return pl.pallas_call(kernel, out_shape=shape, compiler_params=params)(x, y)
