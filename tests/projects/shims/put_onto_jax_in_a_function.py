import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

_pallas_call = pl.pallas_call


def _renamed(kernel, *args, compiler_params=None, **kwargs):
    if isinstance(compiler_params, dict) and hasattr(pltpu, "CompilerParams"):
        compiler_params = pltpu.CompilerParams(**compiler_params.get("mosaic", compiler_params))
    return _pallas_call(kernel, *args, compiler_params=compiler_params, **kwargs)


def install():
    """Lets kernels of ours go on passing dicts."""
    pl.pallas_call = functools.wraps(_pallas_call)(_renamed)
    pltpu.__dict__.setdefault("TPUCompilerParams", dict)
    vars(pl)["load"] = lambda ref, idx: ref[idx]


install()


def kernel(x_ref, o_ref):
    o_ref[...] = pl.load(x_ref, (slice(None), slice(None)))


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=dict(mosaic=dict(dimension_semantics=("parallel",))),
    )(x)
