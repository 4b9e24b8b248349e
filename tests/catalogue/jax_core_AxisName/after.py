import jax
import jax.numpy as jnp
from casehelp import check, S

import jax.core
import typing
x = typing.Hashable
