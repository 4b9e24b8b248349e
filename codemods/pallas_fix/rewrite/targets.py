"""The nodes that edits name inside a call, a display, a function."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from pallas_fix.edits import MoveIntoScope, Span
from pallas_fix.rewrite.arguments import Display, keyword_index
from pallas_fix.rewrite.locate import Block, Function, NotFound, Tree, statements_of
from pallas_fix.rewrite.parameters import find_parameter


def argument_at(tree: Tree, call: cst.Call, value: Span) -> int:
    """The number of the argument whose value lies at `value`."""
    for index, argument in enumerate(call.args):
        if value in (tree.span(argument.value), tree.span(argument)):
            return index
    raise NotFound("the call has no such argument")


def keyword_at(call: cst.Call, keyword: str) -> cst.Arg:
    """The argument `keyword=...` of a call."""
    index = keyword_index(call, keyword)
    if index is None:
        raise NotFound(f"the call has no argument `{keyword}`")
    return call.args[index]


def display_at(tree: Tree, span: Span) -> Display:
    """The list, tuple, set or dict at `span`."""
    node = tree.expression(span)
    if not isinstance(node, Display):
        raise NotFound("no list, tuple, set or dict there")
    return node


def element_at(tree: Tree, display: Display, element: Span) -> int:
    """The number of the element that lies at `element`, or whose value does."""
    for index, item in enumerate(display.elements):
        if element in (tree.span(item.value), tree.span(item)):
            return index
    raise NotFound("no such element there")


def decorator_at(tree: Tree, function: Function, span: Span) -> int:
    """The number of the decorator whose expression lies at `span`."""
    if isinstance(function, cst.FunctionDef):
        for index, item in enumerate(function.decorators):
            if tree.span(item.decorator) == span:
                return index
    raise NotFound("no such decorator there")


def parameter_at(function: Function, name: str) -> cst.Param:
    """The parameter of that name."""
    found = find_parameter(function, name)
    if found is None:
        raise NotFound(f"the function has no parameter `{name}`")
    return found


def scope_at(tree: Tree, edit: MoveIntoScope) -> tuple[Block, int, int]:
    """The block out of which statements move, and the numbers of the first and the last."""
    block, first = tree.first_number(tree.function(edit.span))
    last = len(statements_of(block)) - 1
    ends = []
    for span, default in ((edit.first, first), (edit.last, last)):
        place = tree.place(tree.statement(span)) if span is not None else None
        if place is not None and place.block is not block:
            raise NotFound("a statement to move is not of the body of the function")
        ends.append(default if place is None else place.number)
    if ends[0] > ends[1]:
        raise NotFound("there are no statements to move")
    return block, ends[0], ends[1]


def simple_at(tree: Tree, span: Span) -> cst.BaseSmallStatement:
    """The statement at `span`, which must hold no block."""
    statement = tree.statement(span)
    if not isinstance(statement, cst.BaseSmallStatement):
        raise NotFound("the statement there holds a block")
    return statement


def one_simple(
    lines: Sequence[cst.CSTNode], instead_of: cst.BaseSmallStatement
) -> cst.BaseSmallStatement:
    """The one statement that some code is, for the place of another."""
    if len(lines) != 1 or not isinstance(lines[0], cst.SimpleStatementLine):
        raise NotFound("the code for the place of a statement is not one simple statement")
    return lines[0].body[0].with_changes(semicolon=instead_of.semicolon)
