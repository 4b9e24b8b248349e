"""Meshes of devices: which expressions are one, and what its axes are called."""

from __future__ import annotations

import ast

from pallas_fix.facts.allocations import argument
from pallas_fix.facts.constants import Constants
from pallas_fix.facts.names import Names

# Where jax has had its meshes, from 0.4.30 on (jax/sharding.py, jax/__init__.py).
MAKERS = frozenset(
    {
        "jax.sharding.Mesh",
        "jax.sharding.AbstractMesh",
        "jax.make_mesh",
        "jax.experimental.maps.Mesh",
        "jax.interpreters.pxla.Mesh",
        "jax._src.mesh.Mesh",
        "jax._src.mesh.AbstractMesh",
    }
)
CONCRETE = frozenset(name for name in MAKERS if not name.endswith("AbstractMesh"))


def made(names: Names, constants: Constants, expr: ast.expr | None) -> ast.Call | None:
    """The call that makes the mesh that an expression is, where that is certain."""
    node = constants.origin(expr)
    if isinstance(node, ast.Call) and names.public(node.func) in MAKERS:
        return node
    return None


def axes(names: Names, constants: Constants, expr: ast.expr | None) -> tuple[str, ...] | None:
    """The names of the axes of a mesh in their order, or None where they are not known."""
    call = made(names, constants, expr)
    if call is None:
        return None
    value = constants.fold(argument(call, 1, "axis_names"))
    found = (value,) if isinstance(value, str) else value
    if not isinstance(found, tuple):
        return None
    known = tuple(name for name in found if isinstance(name, str))
    return known if known and len(known) == len(found) else None
