import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt
from casehelp import check, S

def kernel(x_ref, o_ref):
    i = plt.max_contiguous(jnp.arange(128), 128)
    o_ref[...] = x_ref[i]
f = lambda x: pl.pallas_call(kernel, out_shape=S((128,)))(x)
check(f, S((128,)), target='cuda')
