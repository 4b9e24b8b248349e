import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

def f(x):
    mesh = pltpu.TensorCoreMesh(axis_name="core", num_cores=1)
    def body(x_ref, o_ref):
        @pltpu.run_on_first_core("core")
        def _():
            pltpu.sync_copy(x_ref, o_ref)
    return pl.kernel(body, out_type=S((8, 128)), mesh=mesh)(x)
check(f, S((8, 128)))
