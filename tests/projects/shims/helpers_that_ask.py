import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu


@functools.lru_cache(maxsize=None)
def _fresh():
    parts = jax.__version__.split(".")
    if int(parts[0]) > 0:
        return True
    return tuple(int(p) for p in parts[:2]) >= (0, 7)


def _accepts(function, keyword):
    import inspect

    return keyword in inspect.signature(function).parameters


def _first(module, *names):
    for name in names:
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(names)


Params = _first(pltpu, "CompilerParams", "TPUCompilerParams")


def spaces():
    return pltpu.MemorySpace if _fresh() else pltpu.TPUMemorySpace


def launch(body, out):
    if _accepts(plgpu.kernel, "out_shape"):
        made = plgpu.kernel(body, out_shape=out)
    else:
        made = plgpu.kernel(body, out_type=out)
    return made


def run(kernel, x):
    return pl.pallas_call(
        kernel,
        out_shape=x,
        compiler_params=Params(dimension_semantics=("parallel",)),
    )(x)
