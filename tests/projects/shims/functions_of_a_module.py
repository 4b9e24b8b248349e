import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu

from mylib import compat
from mylib.utils import jax_version, requires


def params(*semantics):
    if compat.jax_version() >= (0, 7):
        return pltpu.CompilerParams(dimension_semantics=semantics)
    return pltpu.TPUCompilerParams(dimension_semantics=semantics)


def launch(body, out):
    if compat.has_out_type():
        return plgpu.kernel(body, out_type=out)
    return plgpu.kernel(body, out_shape=out)


def read(ref):
    return pl.load(ref, (slice(None),)) if jax_version < (0, 9) else ref[...]


def space():
    return pltpu.TPUMemorySpace.ANY if not requires("jax>=0.7") else pl.ANY
