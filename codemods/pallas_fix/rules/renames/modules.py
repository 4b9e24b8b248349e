"""Modules of jax that have moved: the imports of a file that name them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.edits import (
    Code,
    Edit,
    InsertAfter,
    RemoveStatement,
    Replace,
    SetImported,
    SetModule,
)
from pallas_fix.facts import Facts
from pallas_fix.rules.renames.table import Row, modules


@dataclass(frozen=True, slots=True)
class Moved:
    """A place that names a module by its old path: what makes it name the new one.

    There are no edits where the row has no new path.
    """

    node: ast.alias | ast.stmt
    row: Row
    edits: tuple[Edit, ...]


def moved(facts: Facts) -> Iterator[Moved]:
    """The imports that name a module that has moved, or something in one."""
    table = modules()
    for node in facts.index.all(ast.ImportFrom):
        if node.level or not node.module:
            continue
        row = _row(node.module)
        if row is not None:
            new = row.new + node.module[len(row.name) :]
            yield Moved(node, row, (SetModule(facts.span(node), new),) if row.new else ())
            continue
        for alias in node.names:
            found = table.get(f"{node.module}.{alias.name}")
            if found is not None:
                yield Moved(alias, found, _member(facts, node, alias, found))
    for statement in facts.index.all(ast.Import):
        for alias in statement.names:
            row = _row(alias.name)
            if row is not None:
                yield Moved(alias, row, _whole(facts, statement, alias, row))


def _row(path: str) -> Row | None:
    """The row of a module or of one around it."""
    table = modules()
    while path:
        if path in table:
            return table[path]
        path = path.rpartition(".")[0]
    return None


def _member(facts: Facts, node: ast.ImportFrom, alias: ast.alias, row: Row) -> tuple[Edit, ...]:
    """`from package import module [as alias]`: the file keeps its name for the module."""
    if not row.new:
        return ()
    package, _, name = row.new.rpartition(".")
    local = alias.asname or alias.name
    bound = name if local == name else f"{name} as {local}"
    span = facts.span(node)
    if package == node.module:
        return (SetImported(span, alias.name, name if alias.asname else bound),)
    new = InsertAfter(span, Code(f"from {package} import {bound}"))
    if len(node.names) == 1:
        return (new, RemoveStatement(span))
    return (new, SetImported(span, alias.name))


def _whole(facts: Facts, node: ast.Import, alias: ast.alias, row: Row) -> tuple[Edit, ...]:
    """`import package.module [as alias]`: without an alias, the paths in the code change too."""
    if not row.new:
        return ()
    new = row.new + alias.name[len(row.name) :]
    changed: list[Edit] = [SetImported(facts.span(node), alias.name, new)]
    if alias.asname is None:
        last = row.name.rpartition(".")[2]
        changed += (
            Replace(facts.span(use), Code(row.new))
            for use in facts.index.all(ast.Attribute)
            if use.attr == last and facts.names.path(use) == row.name and _from_top(use)
        )
    return tuple(changed)


def _from_top(use: ast.Attribute) -> bool:
    """True if the whole path is written out there."""
    node: ast.expr = use
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "jax"
