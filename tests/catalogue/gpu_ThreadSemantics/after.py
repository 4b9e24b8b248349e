import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from casehelp import check, S

from casehelp import mkernel
def body(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1
f = lambda x: mkernel(body, S((128, 128)), compiler_params=plgpu.CompilerParams(thread_semantics=plgpu.LoweringSemantics.Warpgroup))(x)
check(f, S((128, 128)), target='cuda')
