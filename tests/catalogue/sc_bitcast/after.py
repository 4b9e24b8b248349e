import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from casehelp import check, S

f = lambda x, dtype: pltpu.bitcast(x, dtype, dim=-1)
def g(x): return pltpu.bitcast(x, jnp.int32, dim=-1)
def kern(x_ref, o_ref): o_ref[...] = g(x_ref[...])
check(lambda x: pl.pallas_call(kern, out_shape=S((16,), jnp.int32))(x), S((16,)), lower=False)
