"""Names that changed, where a file imports them: the import, and what follows from it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pallas_fix.edits import (
    Code,
    Edit,
    InsertAfter,
    RemoveStatement,
    Replace,
    SetImported,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.paths import short
from pallas_fix.rules.renames.quoted import words
from pallas_fix.rules.renames.spelled import importable, spelled
from pallas_fix.rules.renames.table import Row


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that `from ... import` binds."""

    statement: ast.ImportFrom
    alias: ast.alias

    @property
    def local(self) -> str:
        """The name in the file."""
        return self.alias.asname or self.alias.name

    @property
    def public(self) -> str:
        """The name as tables have it."""
        path = f"{self.statement.module}.{self.alias.name}"
        return path if path.startswith("jax._src.") else short(path)

    def occurrences(self, facts: Facts) -> Iterator[ast.Name]:
        """Where the name stands in the scopes that see this import."""
        home = facts.names.scope(self.statement)
        for node in ast.walk(facts.tree):
            if isinstance(node, ast.Name) and node.id == self.local:
                bound = facts.names.lookup(node.id, facts.names.scope(node))
                if bound is not None and bound[0] is home:
                    yield node

    def alone(self, facts: Facts) -> bool:
        """True if nothing else binds the name in its scope, but for a fallback to None."""
        bound = facts.names.lookup(self.local, facts.names.scope(self.statement))
        return bound is not None and all(
            b.node is self.statement
            or (isinstance(b.value, ast.Constant) and b.value.value is None)
            for b in bound[1]
        )


def movable(facts: Facts, imported: Imported, row: Row) -> bool:
    """True if the import can bring the new form in the place of the old one."""
    if not imported.alone(facts):
        return False
    return importable(row) is not None or not is_exported(facts, imported.local)


def unused(facts: Facts, imported: Imported) -> bool:
    """True if nothing is left that needs the import."""
    return not (
        any(imported.occurrences(facts))
        or is_exported(facts, imported.local)
        or any(imported.local in found for found in words(facts).values())
    )


def without(facts: Facts, imported: Imported) -> Iterator[Edit]:
    """What takes the name out of its import, with the statement if it imports nothing else."""
    span = facts.span(imported.statement)
    if len(imported.statement.names) == 1:
        yield RemoveStatement(span)
    else:
        yield SetImported(span, imported.alias.name)


def edits(facts: Facts, imported: Imported, row: Row) -> tuple[Edit, ...]:
    """What makes the file import the new form, and write it where it wrote the old name."""
    target = importable(row)
    uses = list(imported.occurrences(facts))
    if target is None:
        return (*without(facts, imported), *_written_out(facts, row, uses))
    module, name = target
    scope = facts.names.scope(imported.statement)
    taken = name != imported.local and facts.names.lookup(name, scope) is not None
    kept = (
        bool(imported.alias.asname)
        or is_exported(facts, imported.local)
        or any(imported.local in found for found in words(facts).values())
        or any(isinstance(use.ctx, ast.Store) for use in uses)
    )
    local = imported.local if kept or taken else name
    changed = [Replace(facts.span(use), Code(local)) for use in uses if local != imported.local]
    bound = name if local == name else f"{name} as {local}"
    span = facts.span(imported.statement)
    if imported.statement.module == module:
        shown = name if imported.alias.asname else bound
        return (SetImported(span, imported.alias.name, shown), *changed)
    added = InsertAfter(span, Code(f"from {module} import {bound}"))
    return (*without(facts, imported), added, *changed)


def _written_out(facts: Facts, row: Row, uses: Iterable[ast.Name]) -> Iterator[Edit]:
    for use in uses:
        spelling = spelled(facts, row, use)
        yield Replace(facts.span(use), Code(spelling.text))
        yield from spelling.imports


def is_exported(facts: Facts, name: str) -> bool:
    """True if others may import the name from this file."""
    if facts.path.endswith("__init__.py"):
        return True
    for statement in facts.tree.body:
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AugAssign | ast.AnnAssign)
            else []
        )
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            values = ast.walk(statement)
            if any(isinstance(v, ast.Constant) and v.value == name for v in values):
                return True
    return False


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None
