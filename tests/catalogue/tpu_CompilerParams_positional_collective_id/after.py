import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]

p = pltpu.CompilerParams(dimension_semantics=("parallel",), allow_input_fusion=None, vmem_limit_bytes=None, collective_id=7, flags=None)
f = lambda x: pl.pallas_call(kernel, out_shape=S((8, 128)), grid=(1,), compiler_params=p)(x)
check(f, S((8, 128)), lower=False)
