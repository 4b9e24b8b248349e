import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from casehelp import check, S

def body(x_gmem, o_gmem):
    def on_blocks(_, x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    plgpu.emit_pipeline(
        on_blocks,
        grid=(),
        in_specs=[plgpu.BlockSpec()],
        out_specs=[plgpu.BlockSpec()],
    )(x_gmem, o_gmem)

f = lambda x: plgpu.kernel(body, out_type=S((128, 128)), compiler_params=plgpu.CompilerParams())(x)
check(f, S((128, 128)), target='cuda')
