"""Parentheses: where precedence or a line break needs them, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

import libcst as cst

_ANY, _LAMBDA, _TEST, _NOT, _COMPARE, _BIT_OR = 0, 1, 2, 5, 6, 7
_UNARY, _POWER, _AWAIT, _PRIMARY = 13, 14, 15, 16

_BINARY: dict[type[cst.CSTNode], int] = {
    cst.Or: 3,
    cst.And: 4,
    cst.BitOr: _BIT_OR,
    cst.BitXor: 8,
    cst.BitAnd: 9,
    cst.LeftShift: 10,
    cst.RightShift: 10,
    cst.Add: 11,
    cst.Subtract: 11,
    cst.Multiply: 12,
    cst.MatrixMultiply: 12,
    cst.Divide: 12,
    cst.FloorDivide: 12,
    cst.Modulo: 12,
    cst.Power: _POWER,
}
_BRACKETED = (
    cst.Arg,
    cst.List,
    cst.Set,
    cst.Dict,
    cst.DictElement,
    cst.StarredDictElement,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.SubscriptElement,
    cst.FormattedStringExpression,
)
_STATEMENT_VALUES = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr)


def fit(
    expression: cst.BaseExpression,
    parent: cst.CSTNode,
    child: cst.BaseExpression,
    *,
    bracketed: bool,
) -> cst.BaseExpression:
    """`expression` with the parentheses that it needs as `child` of `parent`, and no others.

    `bracketed` says that a line break is free there. Parentheses that hold a comment or a line
    break of their own stay.
    """
    bare = without_parens(expression)
    loose = not bare.lpar and _binding(bare) < _needed(parent, child)
    if _binding(bare) == _ANY and type(bare) is type(child):
        loose = loose and bool(child.lpar)  # what was there without parentheses may be so again
    if loose or (not bare.lpar and not bracketed and breaks_lines(bare)):
        return parenthesized(bare)
    return bare


def is_closed(expression: cst.BaseExpression) -> bool:
    """True for code that binds most tightly: a name, a call, something in brackets."""
    return bool(expression.lpar) or _binding(expression) >= _AWAIT


def parenthesized(expression: cst.BaseExpression) -> cst.BaseExpression:
    """`expression` in one more pair of parentheses."""
    return expression.with_changes(
        lpar=[cst.LeftParen(), *expression.lpar], rpar=[*expression.rpar, cst.RightParen()]
    )


def without_parens(expression: cst.BaseExpression) -> cst.BaseExpression:
    """`expression` without the parentheses that are not its own and hold nothing but it."""
    outer = zip(expression.lpar, reversed(expression.rpar), strict=True)
    if not all(_plain(left.whitespace_after, right.whitespace_before) for left, right in outer):
        return expression
    return own_code(expression)


def own_code(expression: cst.BaseExpression) -> cst.BaseExpression:
    """`expression` without the parentheses that `ast` does not count to it."""
    own = int(isinstance(expression, (cst.Tuple, cst.GeneratorExp)) and bool(expression.lpar))
    return expression.with_changes(
        lpar=expression.lpar[len(expression.lpar) - own :], rpar=expression.rpar[:own]
    )


def code_of(node: cst.CSTNode) -> str:
    """The code of a node, for questions about it."""
    return cst.Module([]).code_for_node(node)


def breaks_lines(expression: cst.BaseExpression) -> bool:
    """True if the code of `expression` ends a line outside of all brackets."""
    code = code_of(expression)
    if "\n" not in code and "\r" not in code:
        return False
    try:
        return len(ast.parse(code).body) > 1
    except SyntaxError:
        return True


def is_bracketed(ancestors: Iterable[cst.CSTNode]) -> bool:
    """True if a node with these ancestors, the nearest first, lies inside brackets."""
    for node in ancestors:
        if isinstance(node, _BRACKETED) or (isinstance(node, cst.BaseExpression) and node.lpar):
            return True
        if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return False
    return False


def _plain(*spaces: cst.BaseParenthesizableWhitespace) -> bool:
    return not any(isinstance(space, cst.ParenthesizedWhitespace) for space in spaces)


def _binding(node: cst.BaseExpression) -> int:
    """How tightly the operator at the top of `node` binds."""
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return _BINARY[type(node.operator)]
    if isinstance(node, cst.UnaryOperation):
        return _NOT if isinstance(node.operator, cst.Not) else _UNARY
    if isinstance(node, cst.Tuple):
        return _ANY if not node.lpar else _PRIMARY
    return _LOOSE.get(type(node), _PRIMARY)


_LOOSE: Mapping[type[cst.CSTNode], int] = {
    cst.Yield: _ANY,
    cst.NamedExpr: _ANY,
    cst.GeneratorExp: _ANY,
    cst.Lambda: _LAMBDA,
    cst.IfExp: _LAMBDA,
    cst.Comparison: _COMPARE,
    cst.Await: _AWAIT,
    cst.Integer: _AWAIT,
}


def _needed(parent: cst.CSTNode, child: cst.BaseExpression) -> int:
    """How tightly an expression must bind to stand as `child` of `parent` as it is."""
    if isinstance(parent, (cst.BinaryOperation, cst.BooleanOperation)):
        level = _BINARY[type(parent.operator)]
        if isinstance(parent.operator, cst.Power):
            return _AWAIT if child is parent.left else _UNARY
        return level if child is parent.left else level + 1
    if isinstance(parent, cst.UnaryOperation):
        return _NOT if isinstance(parent.operator, cst.Not) else _UNARY
    if isinstance(parent, (cst.Attribute, cst.Call, cst.Subscript, cst.Await)):
        return _PRIMARY
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
        return _BIT_OR
    if isinstance(parent, (cst.StarredElement, cst.StarredDictElement)):
        return _BIT_OR
    if isinstance(parent, cst.IfExp):
        return _LAMBDA if child is parent.orelse else _TEST
    if isinstance(parent, (cst.CompFor, cst.CompIf, cst.FormattedStringExpression)):
        return _TEST
    if isinstance(parent, _STATEMENT_VALUES) and child is parent.value:
        return _ANY
    return _LAMBDA
