"""Places where a file chooses between the old name and the new one, by whatever test."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.rules.renames.table import Row


def chosen(facts: Facts, node: ast.AST, row: Row) -> bool:
    """True if the name stands in one arm of a choice whose other arm has the new name."""
    if not row.new:
        return False
    last = row.new.rpartition(".")[2]
    return any(
        isinstance(part, ast.Attribute)
        and part.attr == last
        and facts.names.public(part) == row.new
        for other in _others(facts, node)
        for part in ast.walk(other)
    )


def _others(facts: Facts, node: ast.AST) -> Iterator[ast.AST]:
    """The other arms of the choices around a node, inside of its function."""
    here = node
    while here in facts.names.parent:
        above = facts.names.parent[here]
        if isinstance(above, ast.IfExp) and here is not above.test:
            yield above.orelse if here is above.body else above.body
        elif isinstance(above, ast.If) and here is not above.test:
            yield from above.orelse if here in above.body else above.body
        elif isinstance(above, ast.BoolOp):
            yield from (value for value in above.values if value is not here)
        elif isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return
        here = above
