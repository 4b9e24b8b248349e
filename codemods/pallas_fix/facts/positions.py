"""From the positions of `ast`, in UTF-8 bytes, to positions in characters."""

from __future__ import annotations

import ast
import re
import sys

from pallas_fix.edits import Span

_LOCATED = (
    ast.expr,
    ast.stmt,
    ast.arg,
    ast.keyword,
    ast.alias,
    ast.ExceptHandler,
    ast.pattern,
    *((ast.type_param,) if sys.version_info >= (3, 12) else ()),
)
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class Positions:
    """The lines of one text, split where Python splits them (not at U+2028 or a form feed)."""

    def __init__(self, text: str) -> None:
        self._lines = _LINE.findall(text.removeprefix("\ufeff"))

    def span(self, node: ast.AST) -> Span:
        """The region of a node that has a position; raises AttributeError for one that has none."""
        if not isinstance(node, _LOCATED):
            raise AttributeError(f"{type(node).__name__} has no position")
        line, end_line = node.lineno, node.end_lineno or node.lineno
        start, end = node.col_offset, node.end_col_offset or node.col_offset
        return Span(line, self._characters(line, start), end_line, self._characters(end_line, end))

    def source(self, span: Span) -> str:
        """The text of a region."""
        lines = self._lines[span.line - 1 : span.end_line]
        if len(lines) == 1:
            return str(lines[0][span.column : span.end_column])
        return "".join((lines[0][span.column :], *lines[1:-1], lines[-1][: span.end_column]))

    def _characters(self, line: int, offset: int) -> int:
        text = self._lines[line - 1]
        if text.isascii():
            return offset
        return len(text.encode()[:offset].decode(errors="replace"))
