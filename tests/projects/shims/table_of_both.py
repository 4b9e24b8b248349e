import jax
from jax.experimental.pallas import tpu as pltpu
params = {True: lambda: pltpu.CompilerParams(), False: lambda: pltpu.TPUCompilerParams()}[hasattr(pltpu, "CompilerParams")]()
