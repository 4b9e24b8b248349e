import jax
import jax.numpy as jnp
from casehelp import check, S

from jax.interpreters import partial_eval as pe
import jax.extend.core
x = jax.extend.core.Jaxpr
