"""Imports that a file can do without: those under `try/except ImportError`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.paths import short

Import = ast.Import | ast.ImportFrom

_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_PALLAS = frozenset({"pl", "pltpu", "plgpu", "triton", "plsc", "fuser"})


def optional(tree: ast.AST) -> Iterator[tuple[Import, ast.alias]]:
    """The imports of names that other code stands in for where jax does not have them.

    The import of a module of Pallas is none of them, unless another import takes its place: a file
    that asks whether there is Pallas at all says nothing of versions.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try) or not any(map(_catches, node.handlers)):
            continue
        tried = list(_imports(node.body))
        instead = [found for handler in node.handlers for found in _imports(handler.body)]
        for here, there in ((tried, instead), (instead, tried)):
            bound = {alias.asname or alias.name for _, alias in there}
            for statement, alias in here:
                local = alias.asname or alias.name
                if local in bound or not _is_pallas(statement, alias):
                    yield statement, alias


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(n, ast.Name) and n.id in _ERRORS for n in ast.walk(handler.type))


def _imports(body: list[ast.stmt]) -> Iterator[tuple[Import, ast.alias]]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((node, alias) for alias in node.names)


def _is_pallas(statement: Import, alias: ast.alias) -> bool:
    module = statement.module if isinstance(statement, ast.ImportFrom) else None
    return short(f"{module}.{alias.name}" if module else alias.name) in _PALLAS
