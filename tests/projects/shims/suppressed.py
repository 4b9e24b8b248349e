import jax
import contextlib
from jax.experimental.pallas import tpu as pltpu
with contextlib.suppress(AttributeError):
    Params = pltpu.TPUCompilerParams
with contextlib.suppress(ImportError):
    from jax.experimental.pallas.tpu import TPUMemorySpace
