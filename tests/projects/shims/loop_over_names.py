import jax
def pick():
    from jax.experimental.pallas import tpu as pltpu
    for name in ("CompilerParams", "TPUCompilerParams"):
        if hasattr(pltpu, name):
            return getattr(pltpu, name)
    return pltpu.TPUCompilerParams
