"""Tests that run only for some versions of jax, or that expect something to fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.guards.objects import called
from pallas_fix.facts.guards.probes import Probes
from pallas_fix.facts.names import Names
from pallas_fix.facts.scopes import FUNCTIONS

_FAILS = frozenset(
    "raises assertRaises assertRaisesRegex warns assertWarns deprecated_call".split()
)
_PALLAS = frozenset({"pl", "pltpu", "plgpu", "triton", "plsc"})
_SKIPS = frozenset("skipif skipIf skipUnless xfail".split())


class Expected:
    """The tests of one module whose code is left alone."""

    def __init__(self, names: Names, probes: Probes) -> None:
        self._names = names
        self._probes = probes

    def of(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node makes to be left alone: a test as a whole, or what follows a skip."""
        match node:
            case ast.With(items=items):
                if any(is_call_of(item.context_expr, _FAILS) for item in items):
                    yield from self._failing(node)
            case ast.Expr(value=ast.Call() as call):
                yield from self._called(node, call)
            case ast.Call(keywords=keywords):
                if any(self._is_skip(k.value) for k in keywords if k.arg == "marks"):
                    yield node
            case ast.FunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                if any(map(self._is_skip, marks)):
                    yield node
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                if any(isinstance(n, ast.Call) and self._is_skip(n) for n in ast.walk(value)):
                    yield from self._names.block(node)

    def _called(self, statement: ast.Expr, call: ast.Call) -> Iterator[ast.AST]:
        """`pytest.raises(AttributeError, function)`, `pytest.importorskip("jax", "0.7")`."""
        if is_call_of(call, _FAILS) and len(call.args) > 1:
            yield from self._failing(statement)
        elif is_call_of(call, frozenset({"importorskip"})):
            minimum = call.args[1:] or any(k.arg == "minversion" for k in call.keywords)
            named = call.args[0] if call.args else None
            if minimum and isinstance(named, ast.Constant) and named.value in ("jax", "jaxlib"):
                block = self._names.block(statement)
                yield from block[block.index(statement) + 1 :]

    def _failing(self, statement: ast.stmt) -> Iterator[ast.AST]:
        """What fails, and what of the test it may fail for: kernels, and uses of Pallas."""
        yield statement
        function = next(self._names.enclosing(statement), None)
        if function is None:
            return
        for part in ast.walk(function):
            if part is not function and isinstance(part, (*FUNCTIONS, ast.ClassDef)):
                yield part
            elif isinstance(part, ast.Name | ast.Attribute):
                name = self._names.public(part) or ""
                if name.partition(".")[0] in _PALLAS:
                    yield self._whole(part)

    def _whole(self, node: ast.expr) -> ast.AST:
        """The statement of an expression, or what of a compound statement it stands in."""
        here: ast.AST = node
        while not isinstance(self._names.parent[here], ast.stmt):
            here = self._names.parent[here]
        above = self._names.parent[here]
        return here if hasattr(above, "body") else above

    def _is_skip(self, mark: ast.expr) -> bool:
        if isinstance(mark, ast.Name):
            binding = self._names.binding(mark, self._names.scope(mark))
            mark = binding.value if binding is not None and binding.value is not None else mark
        if not isinstance(mark, ast.Call) or not is_call_of(mark, _SKIPS):
            return False
        parts = [*mark.args, *(keyword.value for keyword in mark.keywords)]
        return any(map(self._probes.asks, parts)) or any(k.arg == "raises" for k in mark.keywords)


def is_call_of(expr: ast.expr | None, words: frozenset[str]) -> bool:
    """True for a call of a function with one of these names."""
    return isinstance(expr, ast.Call) and called(expr.func) in words
