"""Comments inside of code that a fix replaces: they move above the statement."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pallas_fix.edits import Edit, InsertComment, Span
from pallas_fix.facts import Facts
from pallas_fix.facts.comments import comments


def kept_comments(module: Facts, node: ast.AST, parts: Iterable[Span] = ()) -> Iterator[Edit]:
    """The edits that keep the comments in `node`, but for those in the parts that stay."""
    for text in module.comments(node, parts):
        yield InsertComment(_above(module, node), text)


def comments_of_argument(
    module: Facts, call: ast.Call, value: ast.expr, parts: Iterable[Span] = ()
) -> Iterator[Edit]:
    """The edits that keep what is said of an argument that a fix takes out and puts elsewhere.

    Those are the comments in it, but for the parts that stay, and where it has its lines to itself
    those right above it and behind it: they go with an argument that is dropped for good.
    """
    span = module.span(value)
    others = [module.span(one) for one in (*call.args, *(k.value for k in call.keywords))]
    shared = any(one.line == span.end_line and one > span for one in others)
    before = max((one.end_line for one in others if one < span), default=call.func.end_lineno or 0)
    alone = {where.line: (where, text) for where, text in comments(module.text)}
    said: list[str] = []
    if before < span.line:
        line = span.line - 1
        while line > before and line in alone:
            said.insert(0, alone[line][1])
            line -= 1
    said += module.comments(value, parts)
    where, text = alone.get(span.end_line, (span, ""))
    behind = where.line == span.end_line and where.column >= span.end_column
    if text and behind and before < span.line and not shared:
        said.append(text)
    for text in said:
        yield InsertComment(_above(module, call), text)


def _above(module: Facts, node: ast.AST) -> Span:
    """The statement above which a comment can stand."""
    statement = module.names.statement(node)
    around = module.names.parent[statement]
    if isinstance(statement, ast.If) and isinstance(around, ast.If) and statement in around.orelse:
        statement = around  # an `elif` has no place above it
    return module.span(statement)
