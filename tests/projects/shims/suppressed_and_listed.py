import contextlib

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

Params = None
with contextlib.suppress(AttributeError):
    Params = pltpu.TPUCompilerParams
with contextlib.suppress(AttributeError):
    Params = pltpu.CompilerParams

with contextlib.suppress(ImportError):
    from jax.experimental.pallas.tpu import TPUMemorySpace

SPACES = {
    True: lambda: pltpu.MemorySpace.ANY,
    False: lambda: pltpu.TPUMemorySpace.ANY,
}[hasattr(pltpu, "MemorySpace")]

READERS = [getattr(pl, name) for name in ("load", "read") if hasattr(pl, name)]
semaphore_wait = next(
    module.semaphore_wait for module in (pl, pltpu) if hasattr(module, "semaphore_wait")
)


def run(kernel, x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=Params(dimension_semantics=("parallel",)),
    )(x)
