import jax
from jax.experimental.pallas import tpu as pltpu
_CP = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams
p = _CP(vmem_limit_bytes=1)
