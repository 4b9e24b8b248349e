from jax.experimental import pallas as pl
try:
    pl_load = pl.load
    pl_store = pl.store
except AttributeError:
    def pl_load(ref, idx): return ref[idx]
    def pl_store(ref, idx, v): ref[idx] = v
def kernel(x_ref, o_ref):
    pl_store(o_ref, ..., pl_load(x_ref, ...))
