import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from casehelp import check, S

import inspect
p = inspect.signature(plgpu.inline_mgpu).parameters
plgpu.inline_mgpu(arg_types=(plgpu.RefType(),), return_type=None)
