"""What was an indexing mode, as elements of the block shape."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pallas_fix.edits import Code, Edit, Replace, Span

if TYPE_CHECKING:
    from pallas_fix.facts import Facts
    from pallas_fix.rules.specs.order import Spec

BLOCKED = frozenset({"pl.Blocked", "pl.blocked"})
UNBLOCKED = frozenset({"pl.Unblocked", "pl.unblocked"})


def elements(spec: Spec, mode: ast.expr) -> list[Edit] | None:
    """What makes elements of the dimensions of a block shape that have a size.

    None where the shape, or the padding of the mode, is not written out.
    """
    module, shape = spec.module, spec.shape
    padding = _padding(mode)
    if shape is None:
        return None
    element = module.names.spell("pl.Element", spec.call)
    if padding is None and not _is_written(shape):
        text = f"tuple(None if size is None else {element.text}(size) for size in $shape)"
        code = Code(text, {"shape": module.span(shape)})
        return [Replace(module.span(shape), code), *element.imports]
    if not isinstance(shape, ast.Tuple | ast.List) or not _is_written(shape):
        return None
    pairs = _pairs(module, mode, padding, len(shape.elts))
    if pairs is None:
        return None
    edits: list[Edit] = [*element.imports]
    for item, pair in zip(shape.elts, pairs, strict=True):
        if isinstance(item, ast.Constant) and item.value is None:
            continue
        parts: dict[str, Span] = {"size": module.span(item)}
        text = "$size"
        if isinstance(pair, ast.expr):
            parts["padding"] = module.span(pair)
            text = "$size, $padding"
        elif pair is not None:
            text = f"$size, {pair}"
        edits.append(Replace(module.span(item), Code(f"{element.text}({text})", parts)))
    return edits


def _padding(mode: ast.expr) -> ast.expr | None:
    """The padding of `pl.Unblocked(padding)`, if it has one."""
    if not isinstance(mode, ast.Call) or not (mode.args or mode.keywords):
        return None
    value = mode.args[0] if mode.args else mode.keywords[0].value
    return None if isinstance(value, ast.Constant) and value.value is None else value


def _pairs(
    module: Facts, mode: ast.expr, padding: ast.expr | None, count: int
) -> list[ast.expr | tuple[object, ...] | None] | None:
    """The padding of each dimension: as it is written, or as it is worth elsewhere."""
    if padding is None:
        return [None] * count
    in_place = isinstance(padding, ast.Tuple | ast.List) and _is_written(padding)
    if in_place and isinstance(padding, ast.Tuple | ast.List):
        return list(padding.elts) if len(padding.elts) == count else None
    worth = module.constants.fold(padding)
    if not isinstance(worth, tuple) or len(worth) != count:
        return None
    pairs = [pair for pair in worth if isinstance(pair, tuple)]
    numbers = all(isinstance(number, int) for pair in pairs for number in pair)
    return [*pairs] if len(pairs) == count and numbers else None


def _is_written(shape: ast.expr) -> bool:
    """True for a tuple or a list with all its elements."""
    return isinstance(shape, ast.Tuple | ast.List) and not any(
        isinstance(item, ast.Starred) for item in shape.elts
    )
