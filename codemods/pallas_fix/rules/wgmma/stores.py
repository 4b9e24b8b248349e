"""Loads and stores of accumulators, and whether a stored value fits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import Ref
from pallas_fix.rules.wgmma.accumulators import Accumulators, steady
from pallas_fix.rules.wgmma.shapes import Shapes
from pallas_fix.rules.wgmma.typed import (
    Typed,
    other_dtype,
    other_shape,
    same_dtype,
    same_shape,
)

MODULE = "mosaic_gpu"
"""A word in every file that can name WGMMA (its public module, and the private ones)."""


@dataclass(frozen=True, slots=True)
class Load:
    """`name = acc[...]` or `name = plgpu.wgmma_accumulator_load(acc)`; `held` is what it holds."""

    statement: ast.stmt
    name: str
    base: ast.expr
    refs: tuple[Ref, ...]
    held: Typed


@dataclass(frozen=True, slots=True)
class Store:
    """`acc[index] = value`, or `wgmma_accumulator_store(acc, value)` with an index of None.

    `held` is the type of the accumulator, `given` that of the value; `whole` is true where the
    index certainly selects everything.
    """

    statement: ast.stmt
    base: ast.expr
    index: ast.expr | None
    value: ast.expr
    refs: tuple[Ref, ...]
    held: Typed
    given: Typed
    whole: bool

    @property
    def misfits(self) -> bool:
        """True where jax certainly refuses the value."""
        shape = other_shape(self.held.shape, self.given.shape)
        return shape or other_dtype(self.held.dtype, self.given.dtype)

    @property
    def fits(self) -> bool:
        """True where jax certainly takes the value."""
        shape = same_shape(self.held.shape, self.given.shape)
        return shape and same_dtype(self.held.dtype, self.given.dtype)


class Traffic:
    """The loads and stores of the accumulators of one module."""

    def __init__(self, module: Facts) -> None:
        self.names = module.names
        self.accumulators = Accumulators(module)
        self.shapes = Shapes(module, self.accumulators)

    def loads(self) -> Iterator[Load]:
        """Whole loads that are bound to a name."""
        for node, events in self.accumulators.nodes("load", "wgmma_load"):
            if isinstance(node, ast.Call) and any(e.kind == "load" for e in events):
                continue
            statement = self.names.parent.get(node)
            name = _target(statement, node)
            base = _loaded(node)
            if not isinstance(statement, ast.stmt) or name is None or base is None:
                continue
            refs = self.accumulators.at(node, "load", "wgmma_load")
            anonymous = all(e.kind == "wgmma_load" and e.ref is None for e in events)
            direct = all(isinstance(e.how, Ref) for e in events) or anonymous
            if not steady(base) or not direct or not (refs or anonymous):
                continue
            held = self.shapes.refs(refs, base) if refs else Typed()
            if isinstance(node, ast.Subscript) and not self.shapes.covers(node.slice, held.shape):
                continue
            yield Load(statement, name, base, tuple(refs), held)

    def stores(self) -> Iterator[Store]:
        """Stores into accumulators, partial ones included."""
        for node, events in self.accumulators.nodes("store", "wgmma_store"):
            statement = node if isinstance(node, ast.stmt) else self.names.parent[node]
            refs = self.accumulators.at(node, "store", "wgmma_store")
            written = _written(statement, node)
            if written is None or not refs or not isinstance(statement, ast.stmt):
                continue
            base, index, value = written
            if steady(base) and all(isinstance(e.how, Ref) for e in events):
                held = self.shapes.refs(refs, base)
                modelled = all(self.shapes.modelled(ref, value) for ref in refs)
                given = held if modelled else self.shapes.of(value)
                whole = index is None or self.shapes.covers(index, held.shape)
                yield Store(statement, base, index, value, tuple(refs), held, given, whole)


def _loaded(node: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Subscript):
        return node.value
    return argument(node, 0, "acc") if isinstance(node, ast.Call) else None


def _target(statement: ast.AST | None, node: ast.AST) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is node:
            return name
        case _:
            return None


def _written(
    statement: ast.AST, node: ast.AST
) -> tuple[ast.expr, ast.expr | None, ast.expr] | None:
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=base, slice=index)], value=value):
            return base, index, value
        case ast.Expr(value=ast.Call() as call) if call is node:
            acc, stored = argument(call, 0, "acc_ref"), argument(call, 1, "val")
            return None if acc is None or stored is None else (acc, None, stored)
        case _:
            return None
