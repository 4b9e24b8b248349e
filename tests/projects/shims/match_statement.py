import jax
from jax.experimental.pallas import tpu as pltpu
match jax.__version_info__[:2]:
    case (0, 4) | (0, 5):
        P = pltpu.TPUCompilerParams
    case _:
        P = pltpu.CompilerParams
