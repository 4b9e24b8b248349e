import jax
from compat import JAX_IS_NEW
from jax.experimental.pallas import tpu as pltpu
ANY = pltpu.HBM if JAX_IS_NEW else pltpu.ANY
def f(k, x):
    if not JAX_IS_NEW:
        return pltpu.TPUCompilerParams()
    else:
        return pltpu.CompilerParams()
