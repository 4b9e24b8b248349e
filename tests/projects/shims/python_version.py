import sys, jax
from jax.experimental.pallas import tpu as pltpu
if sys.version_info < (3, 11):
    P = pltpu.TPUCompilerParams
else:
    P = pltpu.CompilerParams
