"""Edits of short texts, for the tests of the rewriting room."""

from __future__ import annotations

import ast
import re

from pallas_fix.edits import Code, Edit, Fix, Span
from pallas_fix.facts.positions import Positions
from pallas_fix.rewrite import apply_fixes


def at(text: str, fragment: str, nth: int = 0) -> Span:
    """Where a fragment of a text lies; `nth` counts from 0."""
    start = [found.start() for found in re.finditer(re.escape(fragment), text)][nth]
    return Span(*_position(text, start), *_position(text, start + len(fragment)))


def whole(text: str) -> Span:
    """All of a text but for its last line end."""
    return Span(1, 0, *_position(text, len(text.rstrip("\r\n"))))


def function(text: str) -> Span:
    """The first function of a text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return Positions(text).span(node)
    raise ValueError("no function")


def value_of(text: str) -> Span:
    """The value of the assignment with which a text begins."""
    statement = ast.parse(text).body[0]
    assert isinstance(statement, ast.Assign)
    return Positions(text).span(statement.value)


def code(text: str, **parts: Span) -> Code:
    """Code with holes."""
    return Code(text, parts)


def edited(text: str, *edits: Edit) -> str:
    """A text after the edits of one fix; it must parse."""
    rewritten = apply_fixes(text, [Fix(edits, certain=True)])
    assert (rewritten.applied, rewritten.deferred) == ((0,), ())
    ast.parse(rewritten.text.removeprefix("\ufeff"))
    return rewritten.text


def _position(text: str, index: int) -> tuple[int, int]:
    lines = re.split("\r\n|\n|\r", text.removeprefix("\ufeff")[: index - text.startswith("\ufeff")])
    return len(lines), len(lines[-1])
