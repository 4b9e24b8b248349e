import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

_NEW_NAMES = None


def new_names():
    global _NEW_NAMES
    if _NEW_NAMES is None:
        try:
            pltpu.CompilerParams
            _NEW_NAMES = True
        except AttributeError:
            _NEW_NAMES = False
    return _NEW_NAMES


SUPPORTED = {
    "params": hasattr(pltpu, "CompilerParams"),
    "load": "load" in dir(pl),
    "any": "ANY" in vars(pltpu),
}


def params():
    return pltpu.CompilerParams() if new_names() else pltpu.TPUCompilerParams()


def read(ref):
    if SUPPORTED["load"]:
        return pl.load(ref, ())
    return ref[...]


def any_space():
    return pltpu.ANY if SUPPORTED.get("any") else pl.ANY


def options(new=SUPPORTED["params"]):
    if new:
        return pltpu.CompilerParams
    return pltpu.TPUCompilerParams
