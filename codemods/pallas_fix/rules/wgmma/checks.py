"""Asserts and guards that somebody has already written for an accumulator load or store."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pallas_fix.facts.names import Names
from pallas_fix.rules.wgmma.reaching import Assigned, Reaching, binds
from pallas_fix.rules.wgmma.shapes import Shapes
from pallas_fix.rules.wgmma.typed import Typed, same_shape

_CHECKER = re.compile(r"assert|check|ensure|verify|validate|require|can_store|expect", re.I)
_CAUGHT = frozenset({"ValueError", "NotImplementedError", "Exception", "BaseException"})


class Checks:
    """Recognises checks that a value has the shape of an accumulator."""

    def __init__(self, names: Names, shapes: Shapes) -> None:
        self._names = names
        self._shapes = shapes
        self._reaching = Reaching(names)

    def after(self, load: ast.stmt, name: str, base: ast.expr, held: Typed) -> bool:
        """True if a statement after a load checks the loaded value, before it is rebound."""
        value = ast.Name(name, ast.Load())
        for later in self._following(load):
            if self._checks(later, value, base, held):
                return True
            if binds(later, name):
                return False
        return False

    def before(self, store: ast.stmt, value: ast.expr, base: ast.expr, held: Typed) -> bool:
        """True if a statement before a store, or a condition around it, checks the value."""
        name = value.id if isinstance(value, ast.Name) else None
        for earlier in self._preceding(store):
            if self._checks(earlier, value, base, held):
                return True
            if name is not None and binds(earlier, name) and not isinstance(earlier, ast.If):
                return False
        return False

    def _following(self, statement: ast.stmt) -> list[ast.stmt]:
        block = _block(self._names.parent[statement], statement)
        return block[block.index(statement) + 1 :] if block else []

    def _preceding(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        """The statements before this one, nearest first, and the `if`s around it."""
        node: ast.AST = statement
        while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            parent = self._names.parent[node]
            if isinstance(node, ast.stmt):
                block = _block(parent, node)
                yield from reversed(block[: block.index(node)] if block else [])
            if isinstance(parent, ast.If):
                yield parent
            node = parent

    def _checks(self, statement: ast.stmt, value: ast.expr, base: ast.expr, held: Typed) -> bool:
        match statement:
            case ast.Assert(test=test) | ast.If(test=test):
                return self._is_test(test, value, base, held)
            case ast.Expr(value=ast.Call() as call):
                return self._is_checker(call.func) and self._is_test(call, value, base, held)
            case _:
                return False

    def _is_test(self, test: ast.expr, value: ast.expr, base: ast.expr, held: Typed) -> bool:
        inner = test.operand if isinstance(test, ast.UnaryOp) else test
        if isinstance(inner, ast.Name):
            definition = self._reaching.of(inner)
            if isinstance(definition, Assigned):
                return self._is_test(definition.value, value, base, held)
        if not _mentions(test, value):
            return False
        if _mentions(test, base):
            return True
        return any(
            same_shape(self._shapes.shape(side), held.shape)
            for node in ast.walk(test)
            if isinstance(node, ast.Compare) and _mentions(node, value)
            for side in (node.left, *node.comparators)
            if not _mentions(side, value)
        )

    def _is_checker(self, func: ast.expr) -> bool:
        definition = self._names.definition(func)
        if definition is not None:
            return any(isinstance(n, ast.Assert | ast.Raise) for n in ast.walk(definition))
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        return _CHECKER.search(name) is not None


def rescue(names: Names, statement: ast.stmt) -> ast.Try | None:
    """The `try` around a store, handlers included, that catches what jax raises for a misfit."""
    node: ast.AST = statement
    while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module):
        parent = names.parent[node]
        tried = isinstance(parent, ast.Try) and node in (*parent.body, *parent.handlers)
        if isinstance(parent, ast.Try) and tried and _rescues(parent):
            return parent
        node = parent
    return None


def _rescues(tried: ast.Try) -> bool:
    return any(_catches(handler) for handler in tried.handlers)


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(n, ast.Name) and n.id in _CAUGHT for n in ast.walk(handler.type))


def _mentions(expr: ast.AST, part: ast.expr) -> bool:
    text = ast.unparse(part)
    return any(isinstance(n, type(part)) and ast.unparse(n) == text for n in ast.walk(expr))


def _block(parent: ast.AST, statement: ast.AST) -> list[ast.stmt]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and statement in block:
            return block
    return []
