import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from casehelp import check, S

f = lambda x, mask: plsc.cumsum(x, mask=mask)
