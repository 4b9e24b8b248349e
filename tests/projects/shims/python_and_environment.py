import os
import sys

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

# The newest jax for Python 3.9 is 0.4.30.
if sys.version_info < (3, 10):
    PARAMS = dict(mosaic=dict(dimension_semantics=("parallel",)))
    SPEC = pl.BlockSpec(lambda i: (i, 0), (8, 128))
else:
    PARAMS = pltpu.CompilerParams(dimension_semantics=("parallel",))
    SPEC = pl.BlockSpec((8, 128), lambda i: (i, 0))

if os.environ.get("MYLIB_OLD_PALLAS"):
    ANY = pltpu.TPUMemorySpace.ANY
else:
    ANY = pl.ANY


def run(kernel, x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[SPEC],
        out_specs=pl.BlockSpec(memory_space=ANY),
        compiler_params=PARAMS,
    )(x)
