import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = jax.lax.dot_general(x_ref[...], y_ref[...], dimension_numbers=(((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
f = lambda x, y: pl.pallas_call(kernel, out_shape=S((128, 128)))(x, y)
check(f, S((128, 128), jnp.bfloat16), S((128, 128), jnp.bfloat16))
