import jax
from packaging import version
from jax.experimental.pallas import tpu as pltpu
NEW = version.parse(jax.__version__) >= version.parse("0.7.0")
def params(**kw):
    if NEW:
        return pltpu.CompilerParams(**kw)
    return pltpu.TPUCompilerParams(**kw)
