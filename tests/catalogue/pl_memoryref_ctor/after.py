import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from casehelp import check, S

from jax._src.pallas.core import MemoryRef
r = pltpu.VMEM((8, 128), jnp.float32)
assert r.shape == (8, 128)
