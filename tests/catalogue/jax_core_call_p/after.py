import jax
import jax.numpy as jnp
from casehelp import check, S

import jax.core
import jax.extend.core.primitives
x = jax.extend.core.primitives.call_p
