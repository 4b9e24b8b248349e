"""How a file came by `wgmma_accumulator_store`, which jax does not export."""

from __future__ import annotations

import ast

from pallas_fix.facts.names import Names

PUBLIC = "jax.experimental.pallas.mosaic_gpu"


def private_store(names: Names, statement: ast.stmt) -> bool:
    """True for a call of the function by a path into `jax._src`, where it does exist."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    return not exported(names, statement.value.func)


def exported(names: Names, func: ast.expr) -> bool:
    """True where a name is looked up in the public module (`plgpu.wgmma_accumulator_store`)."""
    path = names.path(func)
    return path is not None and path.rpartition(".")[0] == PUBLIC


def imported_alone(names: Names, name: ast.Name) -> ast.ImportFrom | None:
    """The import of a name that only one call uses, where it imports nothing else."""
    binding = names.binding(name, names.scope(name))
    statement = binding.node if binding is not None else None
    if not isinstance(statement, ast.ImportFrom) or len(statement.names) != 1:
        return None
    uses = [n for n in ast.walk(names.tree) if isinstance(n, ast.Name) and n.id == name.id]
    return statement if uses == [name] else None
