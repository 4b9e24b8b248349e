"""Imports that a file can do without: those under `try/except ImportError`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pallas_fix.facts.paths import short

Import = ast.Import | ast.ImportFrom

_MISSING = frozenset({"ImportError", "ModuleNotFoundError"})
_ERRORS = _MISSING | {"Exception", "BaseException"}
_PALLAS = frozenset({"pl", "pltpu", "plgpu", "triton", "plsc", "fuser"})
# Modules that every jax has had since Pallas is there (jax/__init__.py, jax/experimental).
_ALWAYS = frozenset(
    "jnp lax jax.nn jax.random jax.scipy jax.experimental jax.tree_util jax.sharding jax.dtypes "
    "jax.profiler jax.debug jax.image jax.ops jax.stages jax.experimental.mesh_utils "
    "jax.experimental.multihost_utils jax.experimental.checkify".split()
)


def optional(nodes: Iterable[ast.AST]) -> Iterator[tuple[Import, ast.alias]]:
    """The imports, among the nodes of a file, that other code stands in for where jax lacks them.

    The import of jax, of a module of Pallas, or of one that every jax has is none of them, unless
    another import takes its place: a file that asks whether there is Pallas at all says nothing
    of versions.
    """
    for node in nodes:
        if isinstance(node, ast.Try) and any(catches(h.type) for h in node.handlers):
            tried = list(_imports(node.body))
            instead = [found for handler in node.handlers for found in _imports(handler.body)]
        elif isinstance(node, ast.With) and any(map(_suppresses, node.items)):
            tried, instead = list(_imports(node.body)), []
        else:
            continue
        for here, there in ((tried, instead), (instead, tried)):
            bound = {alias.asname or alias.name for _, alias in there}
            for statement, alias in here:
                local = alias.asname or alias.name
                if local in bound or not is_always_there(statement, alias):
                    yield statement, alias


def catches(caught: ast.expr | None, errors: frozenset[str] = _ERRORS) -> bool:
    """True if one of the errors that a handler is for means that an import fails."""
    if caught is None:
        return True
    return any(isinstance(n, ast.Name) and n.id in errors for n in ast.walk(caught))


def is_always_there(statement: Import, alias: ast.alias) -> bool:
    """True for the import of a module that is there wherever there is jax, or Pallas."""
    if isinstance(statement, ast.Import):
        return alias.name.partition(".")[0] == "jax"
    name = short(f"{'.' * statement.level}{statement.module or ''}.{alias.name}")
    return name in _PALLAS or name in _ALWAYS


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    func = call.func if isinstance(call, ast.Call) else None
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None)
    return name == "suppress" and catches(call, _MISSING)


def _imports(body: list[ast.stmt]) -> Iterator[tuple[Import, ast.alias]]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((node, alias) for alias in node.names)
