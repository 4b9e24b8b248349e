import jax
from importlib.metadata import version
from jax.experimental.pallas import tpu as pltpu
if version("jax") < "0.7":
    P = pltpu.TPUCompilerParams
else:
    P = pltpu.CompilerParams
jax_ver = version("jax")
if jax_ver.startswith("0.4"):
    Q = pltpu.TPUCompilerParams
else:
    Q = pltpu.CompilerParams
