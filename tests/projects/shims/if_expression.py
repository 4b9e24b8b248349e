import jax
from jax.experimental.pallas import tpu as pltpu
CompilerParams = pltpu.CompilerParams if hasattr(pltpu, "CompilerParams") else pltpu.TPUCompilerParams
