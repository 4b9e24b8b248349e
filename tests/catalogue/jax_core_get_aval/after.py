import jax
import jax.numpy as jnp
from casehelp import check, S

import jax.core
x = jax.typeof(1.0)
