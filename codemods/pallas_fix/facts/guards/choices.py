"""Expressions that choose between things by the version of jax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.guards.evidence import is_unknown
from pallas_fix.facts.guards.objects import Objects, called
from pallas_fix.facts.guards.probes import Probes
from pallas_fix.facts.names import Names

_TABLES = (ast.Dict, ast.Tuple, ast.List)


class Choices:
    """The expressions of one module that hold something for several versions of jax."""

    def __init__(self, names: Names, objects: Objects, probes: Probes) -> None:
        self._names = names
        self._objects = objects
        self._probes = probes

    def of(self, node: ast.AST) -> Iterator[ast.AST]:
        """The node, where it is such an expression, and the table out of which it takes one."""
        asks = self._probes.asks
        match node:
            case ast.IfExp(test=test):
                if asks(test) or is_unknown(self._names, test):
                    yield node
            case ast.BoolOp(values=values) if any(map(asks, values[:-1])):
                yield node
            case ast.Subscript(value=table, slice=index):
                if self._table(table) and asks(index):
                    yield from (node, *self._table(table))
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                if any(asks(test) for part in node.generators for test in part.ifs):
                    yield node
            case ast.Call():
                yield from self._called(node)

    def _called(self, node: ast.Call) -> Iterator[ast.AST]:
        func, args = node.func, node.args
        word = called(func)
        if word == "getattr" and len(args) == 3 and self._objects.is_jax(args[0]):
            yield node
        elif word == "next" and len(args) == 2 and isinstance(args[0], ast.GeneratorExp):
            if any(self._probes.asks(t) for part in args[0].generators for t in part.ifs):
                yield node
        elif isinstance(func, ast.Attribute) and word in ("get", "pop") and args:
            owner = func.value
            if self._objects.space(owner) is not None:
                yield node
            elif self._table(owner) and self._probes.asks(args[0]):
                yield from (node, *self._table(owner))
        elif any(isinstance(arg, ast.Lambda) for arg in args) and any(
            self._probes.asks(arg) for arg in args if not isinstance(arg, ast.Lambda)
        ):
            yield node

    def _table(self, expr: ast.expr) -> list[ast.expr]:
        """The dict, tuple or list that an expression is, or names."""
        if isinstance(expr, ast.Name):
            binding = self._names.binding(expr, self._names.scope(expr))
            expr = binding.value if binding is not None and binding.value is not None else expr
        return [expr] if isinstance(expr, _TABLES) else []
