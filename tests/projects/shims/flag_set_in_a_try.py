import jax
from jax.experimental.pallas import tpu as pltpu
try:
    pltpu.CompilerParams
    HAVE = True
except AttributeError:
    HAVE = False
P = pltpu.CompilerParams if HAVE else pltpu.TPUCompilerParams
