import jax
from jax.experimental import pallas as pl
def _kw(**kw):
    import inspect
    names = inspect.signature(pl.pallas_call).parameters
    if "backend" in names:
        kw["backend"] = "mosaic_tpu"
    return kw
def run(k, s, x):
    return pl.pallas_call(k, out_shape=s, **_kw())(x)
