import jax
from jax.experimental.pallas import tpu as pltpu
def use_old():
    return jax.version.__version_info__ < (0, 7)
def make():
    return pltpu.TPUCompilerParams() if use_old() else pltpu.CompilerParams()
class K:
    OLD = jax.__version_info__ < (0, 7)
    def make(self):
        if self.OLD:
            return pltpu.TPUCompilerParams()
        return pltpu.CompilerParams()
