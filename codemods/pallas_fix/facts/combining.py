"""What known values make together: entries, sums, positions in the grid."""

from __future__ import annotations

import ast

from pallas_fix.facts.constants import Value
from pallas_fix.facts.values import OTHER, GridTest, Items, Known, Program, Table

UNROLL = 16
"""The longest Python loop that is walked pass by pass."""


def constant(value: Value, node: ast.expr | None = None) -> object:
    """A folded value as the walk knows it, where `node` stands for it."""
    if isinstance(value, tuple):
        return Items(tuple(constant(v) for v in value))
    return Known(value, node)


def pick(held: Items | Table, position: object) -> object:
    """The entry of a container at a known position."""
    if not isinstance(position, Known):
        return OTHER
    if isinstance(held, Table):
        return held.items.get(position.value, OTHER)
    index = position.value
    if not isinstance(index, int) or (held.open_front and index >= 0):
        return OTHER
    return held.items[index] if -len(held.items) <= index < len(held.items) else OTHER


def arithmetic(expr: ast.BinOp, parts: list[object]) -> object:
    """Sums and repetitions of sequences, and steps from a position in the grid."""
    match parts:
        case [Items(items=left, open_front=front), Items(items=right, open_front=False)]:
            return Items(left + right, front) if isinstance(expr.op, ast.Add) else OTHER
        case [Items(items=items, open_front=False), Known(value=int(count))]:
            repeat = isinstance(expr.op, ast.Mult) and 0 <= count <= UNROLL
            return Items(items * count) if repeat else OTHER
        case [Program(axis=axis, count=is_count, offset=offset), Known(value=int(number))]:
            if isinstance(expr.op, ast.Add | ast.Sub):
                step = number if isinstance(expr.op, ast.Add) else -number
                return Program(axis, is_count, offset + step)
    return OTHER


def grid_test(left: object, right: object) -> object:
    """What a comparison says of the position in the grid."""
    if not isinstance(left, Program):
        left, right = right, left
    if not isinstance(left, Program) or left.count:
        left, right = right, left
    if not isinstance(left, Program) or left.count:
        return OTHER
    if isinstance(right, Known) and isinstance(right.value, int):
        step = right.value - left.offset
        return GridTest(left.axis, "other", step) if step else GridTest(left.axis, "first")
    if isinstance(right, Program) and right.count and right.axis == left.axis:
        last = right.offset - left.offset == -1
        return GridTest(left.axis, "last" if last else "other")
    return GridTest(left.axis, "other")
