import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

def kernel(x_ref, o_ref):
    def scope(s, r):
        c = pltpu.make_async_remote_copy(x_ref, o_ref, s, r, device_id=(0,), device_id_type=pl.DeviceIdType.MESH)
        c.start(); c.wait()
    pl.run_scoped(scope, pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA)
f = lambda x: pl.pallas_call(kernel, out_shape=S((8, 128)), in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_specs=pl.BlockSpec(memory_space=pl.ANY))(x)
check(f, S((8, 128)), lower=False)
