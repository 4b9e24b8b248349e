"""Indexes as arguments, and as they stand between brackets."""

from __future__ import annotations

import ast

from pallas_fix.edits import Span
from pallas_fix.facts import Facts


def bracketed(module: Facts, index: ast.expr) -> tuple[str, dict[str, Span]]:
    """What stands between the brackets for an index that was an argument, as code with holes.

    A tuple needs no parentheses there, `slice(a, b)` becomes `a:b`, and `()` becomes `...`.
    """
    if not isinstance(index, ast.Tuple) or any(isinstance(e, ast.Starred) for e in index.elts):
        parts: dict[str, Span] = {}
        return _element(module, index, "index", parts), parts
    if not index.elts:
        return "...", {}
    parts = {}
    texts = [_element(module, item, f"i{n}", parts) for n, item in enumerate(index.elts)]
    return ", ".join(texts), parts


def _element(module: Facts, item: ast.expr, hole: str, parts: dict[str, Span]) -> str:
    if _is_slice(module, item):
        assert isinstance(item, ast.Call)
        bounds = [None, *item.args] if len(item.args) == 1 else list(item.args)
        texts = []
        for number, bound in enumerate(bounds):
            if bound is None or (isinstance(bound, ast.Constant) and bound.value is None):
                texts.append("")
            else:
                parts[f"{hole}_{number}"] = module.span(bound)
                texts.append(f"${hole}_{number}")
        return ":".join(texts)
    parts[hole] = module.span(item)
    return f"${hole}"


def _is_slice(module: Facts, item: ast.expr) -> bool:
    """True for a call of the builtin `slice` whose bounds may stand between colons."""
    return (
        isinstance(item, ast.Call)
        and isinstance(item.func, ast.Name)
        and item.func.id == "slice"
        and module.names.lookup("slice", module.names.scope(item)) is None
        and 1 <= len(item.args) <= 3
        and not item.keywords
        and not any(isinstance(bound, ast.Starred | ast.Lambda | ast.IfExp) for bound in item.args)
    )
