import jax
import jax.numpy as jnp
from casehelp import check, S

import numpy as np
from jax.sharding import Mesh, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()[:1]), ('x',))
f = jax.shard_map(lambda a: a + jax.lax.pcast(jnp.ones((8,)), ('x',), to="varying"), mesh=mesh, in_specs=P('x'), out_specs=P('x'))
check(f, S((8,)), target='trace')
