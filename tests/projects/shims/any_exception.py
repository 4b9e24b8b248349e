import jax
from jax.experimental.pallas import tpu as pltpu
try:
    P = pltpu.CompilerParams
except Exception:
    P = pltpu.TPUCompilerParams
