import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

from jax._src.pallas.mosaic import interpret as mosaic_interpret
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]
f = lambda x: pl.pallas_call(kernel, out_shape=S((8, 128)), interpret=pltpu.InterpretParams())(x)
check(f, S((8, 128)), target='trace')
