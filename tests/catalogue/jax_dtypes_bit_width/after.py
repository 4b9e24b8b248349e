import jax
import jax.numpy as jnp
from casehelp import check, S

from jax._src import dtypes
x = jax.dtypes.itemsize_bits(jnp.dtype('int8'))
