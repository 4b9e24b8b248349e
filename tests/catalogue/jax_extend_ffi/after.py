import jax
import jax.numpy as jnp
from casehelp import check, S

import jax.ffi
x = jax.ffi.ffi_call
