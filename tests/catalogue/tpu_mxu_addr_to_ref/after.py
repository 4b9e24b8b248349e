import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

M, K, N = 64, 256, 256
def kernel(x_ref, y_ref, o_ref):
    def scope(acc):
        pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
        pltpu.matmul_acc_lhs(acc=acc, lhs=x_ref[...], load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(acc)

    pl.run_scoped(scope, pltpu.ACC(0)((M, N), jnp.float32))
f = lambda x, y: pl.pallas_call(kernel, out_shape=S((M, N)))(x, y)
check(f, S((M, K), jnp.bfloat16), S((K, N), jnp.bfloat16))
