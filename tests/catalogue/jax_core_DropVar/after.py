import jax
import jax.numpy as jnp
from casehelp import check, S

import jax.core
import jax.extend.core
x = jax.extend.core.DropVar
