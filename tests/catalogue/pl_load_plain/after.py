import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[:, pl.ds(0, 128)]
f = lambda x: pl.pallas_call(kernel, out_shape=S((8, 128)))(x)
check(f, S((8, 256)))
