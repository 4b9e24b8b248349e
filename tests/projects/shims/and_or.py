import jax
from jax.experimental.pallas import tpu as pltpu
IS_OLD = jax.__version_info__ < (0, 7)
P = (IS_OLD and pltpu.TPUCompilerParams) or pltpu.CompilerParams
Q = hasattr(pltpu, "TPUCompilerParams") and pltpu.TPUCompilerParams
while IS_OLD:
    P = pltpu.TPUCompilerParams
    break
