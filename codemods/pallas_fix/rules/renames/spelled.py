"""How a file writes a name that a table gives, and where the name may be imported from."""

from __future__ import annotations

import ast

from pallas_fix.edits import AddImport
from pallas_fix.facts import Facts
from pallas_fix.facts.names import Spelling
from pallas_fix.facts.paths import whole
from pallas_fix.rules.renames.table import Row


def spelled(facts: Facts, row: Row, at: ast.AST) -> Spelling:
    """The new name of a row as the file writes it at a place, with the imports that it needs."""
    if not row.imports:
        return facts.names.spell(row.new, at)
    return Spelling(row.new, (AddImport(row.imports),))


def importable(row: Row) -> tuple[str, str] | None:
    """The module and the name by which the new form can be imported; None if it cannot."""
    path = whole(row.new)
    module, _, name = path.rpartition(".")
    if row.attribute or not module or not name.isidentifier():
        return None
    if row.imports:
        return (module, name) if module == row.imports else None
    return (module, name) if whole(row.new.partition(".")[0]) == module else None
