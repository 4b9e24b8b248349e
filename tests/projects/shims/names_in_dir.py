import jax
from jax.experimental.pallas import tpu as pltpu
assert hasattr(pltpu, "repeat") or True
repeat = pltpu.repeat if "repeat" in dir(pltpu) else None
if "repeat" in dir(pltpu):
    r = pltpu.repeat
if "TPUCompilerParams" in vars(pltpu):
    r = pltpu.TPUCompilerParams
if "TPUCompilerParams" in pltpu.__dict__:
    r = pltpu.TPUCompilerParams
