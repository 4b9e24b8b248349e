import jax
import jax.numpy as jnp
from casehelp import check, S

import numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from jax import shard_map
mesh = Mesh(np.array(jax.devices()[:1]), ('x',))
f = shard_map(lambda a: a * 2, mesh=mesh, in_specs=P('x'), out_specs=P('x'))
check(f, S((8,)), target='trace')
