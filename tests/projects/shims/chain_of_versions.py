import jax
from jax.experimental.pallas import tpu as pltpu
JAX_VERSION = tuple(int(p) for p in jax.__version__.split(".")[:3])
if JAX_VERSION < (0, 7, 0):
    Params = pltpu.TPUCompilerParams
elif JAX_VERSION < (0, 11, 0):
    Params = pltpu.CompilerParams
    sig = pltpu.semaphore_signal
else:
    Params = pltpu.CompilerParams
