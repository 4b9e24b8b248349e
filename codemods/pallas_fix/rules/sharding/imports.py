"""The imports that bring the old shard_map."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import (
    Code,
    Edit,
    InsertAfter,
    RemoveStatement,
    SetImported,
    SetModule,
)
from pallas_fix.facts import Facts
from pallas_fix.rules.renames.imports import Imported

MODULE = "jax.experimental.shard_map"
OLD = f"{MODULE}.shard_map"


def moved(facts: Facts, imported: Imported) -> Iterator[Edit]:
    """What makes `from jax.experimental.shard_map import shard_map` bring `jax.shard_map`."""
    span = facts.span(imported.statement)
    if len(imported.statement.names) == 1:
        yield SetModule(span, "jax")
        return
    alias = imported.alias
    bound = alias.name if alias.asname is None else f"{alias.name} as {alias.asname}"
    yield SetImported(span, alias.name)
    yield InsertAfter(span, Code(f"from jax import {bound}"))


def leftover(facts: Facts) -> Iterator[tuple[ast.alias, Edit]]:
    """Each `import jax.experimental.shard_map` that nothing needs, and what takes it away."""
    statements = [
        (node, alias)
        for node in facts.index.all(ast.Import)
        for alias in node.names
        if alias.name == MODULE
    ]
    for node, alias in statements:
        if facts.is_guarded(facts.span(node)) or _needed(facts, alias):
            continue
        span = facts.span(node)
        if alias.asname is None and not _brings_jax(facts, node):
            yield alias, SetImported(span, alias.name, "jax")
        elif len(node.names) == 1:
            yield alias, RemoveStatement(span)
        else:
            yield alias, SetImported(span, alias.name)


def _needed(facts: Facts, alias: ast.alias) -> bool:
    within = MODULE if alias.asname else "jax.experimental"
    for node in ast.walk(facts.tree):
        if isinstance(node, ast.Name) and alias.asname is not None and node.id == alias.asname:
            return True
        if isinstance(node, ast.Attribute):
            path = facts.names.path(node)
            if path is not None and f"{path}.".startswith(f"{within}."):
                return True
    return False


def _brings_jax(facts: Facts, besides: ast.Import) -> bool:
    """True if the scope has the name `jax` from another import too."""
    scope = facts.names.scope(besides)
    return any(
        alias.asname is None and alias.name.partition(".")[0] == "jax" and alias.name != MODULE
        for node in facts.index.all(ast.Import)
        if facts.names.scope(node) is scope
        for alias in node.names
    )
