"""Comments inside of code that a fix replaces: they move above the statement."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pallas_fix.edits import Edit, InsertComment, Span
from pallas_fix.facts import Facts


def kept_comments(module: Facts, node: ast.AST, parts: Iterable[Span] = ()) -> Iterator[Edit]:
    """The edits that keep the comments in `node`, but for those in the parts that stay."""
    statement = module.names.statement(node)
    around = module.names.parent[statement]
    if isinstance(statement, ast.If) and isinstance(around, ast.If) and statement in around.orelse:
        statement = around  # an `elif` has no place above it
    for text in module.comments(node, parts):
        yield InsertComment(module.span(statement), text)
