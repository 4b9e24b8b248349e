import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

def kernel(x_ref, m_ref, o_ref):
    o_ref[...] = jnp.where(m_ref[...] > 0, x_ref[:, :], 0)
f = lambda x, m: pl.pallas_call(kernel, out_shape=S((8, 128)))(x, m)
check(f, S((8, 128)), S((8, 128)))
