"""Accumulators that are transposed wherever they are used: allocated the other way around."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import Event, Ref
from pallas_fix.rules.wgmma.accumulators import Accumulators

_SWAPPED = ("(1, 0)", "[1, 0]")


def turn(module: Facts, accumulators: Accumulators, refs: Sequence[Ref]) -> list[Edit] | None:
    """Edits that swap the dimensions of an allocation and drop each transposition of its refs.

    None where some use is not transposed, or where the shape is not written out: then the two
    would not mean the same.
    """
    allocations = [ref.allocation for ref in refs if ref.allocation is not None]
    shape = allocations[0].shape if allocations else None
    alike = len({a.node for a in allocations}) == 1 and len(allocations) == len(refs)
    if not alike or not isinstance(shape, ast.Tuple) or len(shape.elts) != 2:
        return None
    rows, columns = map(module.span, shape.elts)
    swapped = Code("($columns, $rows)", {"columns": columns, "rows": rows})
    edits: list[Edit] = [Replace(module.span(shape), swapped)]
    for ref, events in accumulators.by_ref.items():
        if ref.allocation is None or ref.allocation.node is not allocations[0].node:
            continue
        for event in events:
            edit = _straight(module, event)
            if edit is None:
                return None
            if edit not in edits:
                edits.append(edit)
    return edits


def is_turned(expr: ast.AST) -> ast.expr | None:
    """What is transposed by an expression: `x.T`, `x.transpose((1, 0))`, `x.transpose(1, 0)`."""
    match expr:
        case ast.Attribute(value=inner, attr="T"):
            return inner
        case ast.Call(func=ast.Attribute(value=inner, attr="transpose"), args=order, keywords=[]):
            text = ast.unparse(order[0]) if len(order) == 1 else ""
            pair = f"({', '.join(map(ast.unparse, order))})" if len(order) == 2 else text
            return inner if not order or pair in _SWAPPED else None
        case _:
            return None


def _straight(module: Facts, event: Event) -> Replace | None:
    """The edit that drops the transposition of one use."""
    if event.kind == "wgmma" and isinstance(event.node, ast.Call):
        given = argument(event.node, 0, "acc")
        inner = is_turned(given) if given is not None else None
        if given is None or not isinstance(inner, ast.Name):
            return None
        return _replace(module, given, inner)
    if event.kind in ("load", "wgmma_load") and event.whole and event.how is event.ref:
        around = module.names.parent[event.node]
        if isinstance(around, ast.Attribute) and around.attr == "transpose":
            around = module.names.parent[around]
        if isinstance(event.node, ast.expr) and is_turned(around) is event.node:
            return _replace(module, around, event.node)
    return None


def _replace(module: Facts, node: ast.AST, inner: ast.expr) -> Replace:
    return Replace(module.span(node), Code("$inner", {"inner": module.span(inner)}))
