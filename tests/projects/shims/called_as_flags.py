import jax
from mine import compat, is_new_jax, jax_version_at_least, legacy_pallas
from jax.experimental.pallas import tpu as pltpu


def one():
    return pltpu.CompilerParams() if is_new_jax() else pltpu.TPUCompilerParams()


def two(old_api):
    if old_api:
        return pltpu.TPUCompilerParams()
    return pltpu.CompilerParams()


def three():
    if compat.is_old_pallas:
        return pltpu.TPUMemorySpace.ANY
    elif jax_version_at_least("0.7"):
        return pltpu.CompilerParams
    return pltpu.TPUCompilerParams


def four():
    return legacy_pallas and pltpu.TPUMemorySpace
