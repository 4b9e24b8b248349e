"""Statements one block deeper: what libcst indents by itself, and what it does not."""

from __future__ import annotations

import re
from typing import TypeVar

import libcst as cst

_CONTINUED = re.compile(r"(\\(?:\r\n|\n|\r))")
_N = TypeVar("_N", bound=cst.CSTNode)


def moved_in(node: _N, indent: str) -> _N:
    """A statement as it stands one block deeper.

    libcst indents the lines of a block, and within brackets those that are at least as deep as
    the block. Lines within brackets that are less deep, and lines after a backslash, get one
    more `indent` here. What stands in a string is never touched.
    """
    moved = node.visit(_Deeper(indent))
    return moved if isinstance(moved, type(node)) else node


class _Deeper(cst.CSTTransformer):
    def __init__(self, indent: str) -> None:
        super().__init__()
        self._indent = indent

    def visit_FormattedString(self, node: cst.FormattedString) -> bool:
        return False

    def leave_SimpleWhitespace(
        self, original_node: cst.SimpleWhitespace, updated_node: cst.SimpleWhitespace
    ) -> cst.SimpleWhitespace:
        if "\\" not in updated_node.value:
            return updated_node
        value = _CONTINUED.sub(lambda found: found[1] + self._indent, updated_node.value)
        return updated_node.with_changes(value=value)

    def leave_ParenthesizedWhitespace(
        self,
        original_node: cst.ParenthesizedWhitespace,
        updated_node: cst.ParenthesizedWhitespace,
    ) -> cst.ParenthesizedWhitespace:
        if updated_node.indent:
            return updated_node
        last = cst.SimpleWhitespace(self._indent + updated_node.last_line.value)
        return updated_node.with_changes(last_line=last)
