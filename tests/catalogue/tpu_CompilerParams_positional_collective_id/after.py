import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

p = pltpu.CompilerParams(("parallel",), None, None, 7, None)
f = lambda x: pl.pallas_call(kernel, out_shape=S((8, 128)), grid=(1,), compiler_params=p)(x)
check(f, S((8, 128)), lower=False)
