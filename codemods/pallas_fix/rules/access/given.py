"""The arguments of a call, by the names of the parameters of an old function."""

from __future__ import annotations

import ast


def given(call: ast.Call, *parameters: str) -> dict[str, ast.expr] | None:
    """The arguments by name; None where some are unpacked, given twice, or too many.

    `parameters` are those that may be given by position, in order.
    """
    if any(isinstance(value, ast.Starred) for value in call.args):
        return None
    if len(call.args) > len(parameters) or any(keyword.arg is None for keyword in call.keywords):
        return None
    found = dict(zip(parameters, call.args, strict=False))
    for keyword in call.keywords:
        name = str(keyword.arg)
        if name in found:
            return None
        found[name] = keyword.value
    return found


def is_none(value: ast.expr | None) -> bool:
    """True for an argument that is left out, or written as `None`."""
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def has_order(*values: ast.expr) -> bool:
    """True for expressions that must be evaluated before what follows them in the call."""
    return any(
        isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
        or (isinstance(part, ast.Call) and getattr(part.func, "id", None) == "next")
        or (isinstance(part, ast.Call) and getattr(part.func, "attr", None) in ("pop", "popleft"))
        for value in values
        for part in ast.walk(value)
    )
