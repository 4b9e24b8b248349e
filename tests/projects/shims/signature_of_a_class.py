import jax, inspect
from jax.experimental import pallas as pl
sig = inspect.signature(pl.BlockSpec)
if list(sig.parameters)[0] == "index_map":
    spec = pl.BlockSpec(lambda i: (i, 0), (8, 128))
else:
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
