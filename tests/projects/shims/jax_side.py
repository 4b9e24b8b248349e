"""What kernels need of jax itself, from 0.4.30 on."""

import jax
import jax.numpy as jnp
from jax import lax

try:
    shard_map = jax.shard_map
    _CHECK = "check_vma"
except AttributeError:
    from jax.experimental.shard_map import shard_map

    _CHECK = "check_rep"

tree_map = jax.tree.map if hasattr(jax, "tree") else jax.tree_map

if hasattr(lax, "pcast"):

    def varying(x, axes):
        return lax.pcast(x, axes, to="varying")

elif hasattr(lax, "pvary"):

    def varying(x, axes):
        return lax.pvary(x, axes)

else:

    def varying(x, axes):
        return x


try:
    from jax.extend.core import Primitive, jaxpr_as_fun
except ImportError:
    from jax.core import Primitive, jaxpr_as_fun

use_mesh = jax.set_mesh if hasattr(jax, "set_mesh") else jax.sharding.use_mesh


def mapped(f, mesh, spec):
    return shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, **{_CHECK: False})


def out_struct(x, axes):
    if jax.__version_info__ >= (0, 8):
        return jax.ShapeDtypeStruct(x.shape, x.dtype, vma=axes)
    return jax.ShapeDtypeStruct(x.shape, x.dtype)
