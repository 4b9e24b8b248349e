import jax
from jax.experimental import pallas as pl
_LOAD = getattr(pl, "load", None)
if _LOAD is None:
    def load(r, i): return r[i]
else:
    load = pl.load
if getattr(pl, "store", None):
    store = pl.store
