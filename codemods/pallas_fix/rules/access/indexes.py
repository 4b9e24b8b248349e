"""Indexes as arguments, and as they stand between brackets."""

from __future__ import annotations

import ast

from pallas_fix.edits import Span
from pallas_fix.facts import Facts


def bracketed(module: Facts, index: ast.expr, arange: str = "") -> tuple[str, dict[str, Span]]:
    """What stands between the brackets for an index that was an argument, as code with holes.

    A tuple needs no parentheses there, `slice(a, b)` becomes `a:b`, and `()` becomes `...`. With
    the spelling of `jnp.arange`, a lone slice from 0 on becomes the positions in it.
    """
    if not isinstance(index, ast.Tuple) or any(isinstance(e, ast.Starred) for e in index.elts):
        parts: dict[str, Span] = {}
        return _element(module, index, "index", parts, arange), parts
    if not index.elts:
        return "...", {}
    parts = {}
    arange = arange if _has_one_axis(module, index) else ""
    texts = [_element(module, item, f"i{n}", parts, arange) for n, item in enumerate(index.elts)]
    return ", ".join(texts), parts


def from_zero(module: Facts, item: ast.expr) -> ast.expr | None:
    """The size of a `pl.ds` that begins at 0, as far as that is written there."""
    if not isinstance(item, ast.Call) or item.keywords or not 1 <= len(item.args) <= 2:
        return None
    if module.names.qualified(item.func) not in ("pl.ds", "pl.dslice"):
        return None
    start, size = item.args[0], item.args[-1]
    if len(item.args) == 2 and not (isinstance(start, ast.Constant) and start.value == 0):
        return None
    return None if isinstance(size, ast.Constant) and size.value is None else size


def may_overrun(module: Facts, index: ast.expr) -> bool:
    """True for an index with a slice that jax 0.12.0 refuses where it is longer than the ref.

    It compares only what it knows: the end of a slice whose start is a number that is not traced
    (jax/_src/state/indexing.py; before, it took a start of 0 for one that it did not know).
    """
    origin = module.constants.origin(index)
    items = origin.elts if isinstance(origin, ast.Tuple) else [index]
    if origin is index and (not isinstance(index, ast.Tuple) or _has_one_axis(module, index)):
        items = [item for item in items if from_zero(module, item) is None]  # positions by now
    return any(from_zero(module, module.constants.origin(item) or item) for item in items)


def _has_one_axis(module: Facts, index: ast.Tuple) -> bool:
    """True where all elements but one are surely numbers."""
    return sum(not _is_number(module, item) for item in index.elts) == 1


def _is_number(module: Facts, item: ast.expr) -> bool:
    """True for an element of an index that is surely no array."""
    origin = module.constants.origin(item)
    if isinstance(origin, ast.BinOp):
        return all(_is_number(module, side) for side in (origin.left, origin.right))
    if isinstance(origin, ast.Call):
        return module.names.qualified(origin.func) in ("pl.program_id", "pl.num_programs")
    return isinstance(origin, ast.Constant) and isinstance(origin.value, int)


def _element(
    module: Facts, item: ast.expr, hole: str, parts: dict[str, Span], arange: str = ""
) -> str:
    size = from_zero(module, item) if arange else None
    if size is not None:
        parts[hole] = module.span(size)
        return f"{arange}(${hole})"
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
