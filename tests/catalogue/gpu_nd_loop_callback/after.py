import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from casehelp import check, S

import inspect
kw = dict(out_type=S((4, 128)))
if 'out_type' not in inspect.signature(plgpu.kernel).parameters: kw = dict(out_shape=S((4, 128)))

def body(o_ref):
    def step(loop_info):
        idx = loop_info.index
        o_ref[idx[0]] = jnp.full((128,), idx[0]).astype(jnp.float32)
    plgpu.nd_loop((4,), collective_axes="x")(step)
f = lambda: plgpu.kernel(body, grid=(2,), grid_names=("x",), **kw)()
check(f, target='cuda')
