import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from casehelp import check, S

a = plgpu.Layout.WGMMA.reduce(1)
b = plgpu.Layout.WGMMA.reduce(0)
from jax.experimental.mosaic.gpu import fragmented_array as fa
print(a, b)
