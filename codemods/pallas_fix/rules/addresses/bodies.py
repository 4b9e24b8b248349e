"""The part of a kernel that moves into a scope, and what can be named where the scope begins."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.facts import Facts
from pallas_fix.facts.names import Function


class Body:
    """The body of a function, of which the part that uses accumulators moves into a scope."""

    def __init__(
        self, module: Facts, function: Function, nodes: Sequence[ast.expr], *, whole: bool
    ) -> None:
        """`nodes` are what must move; `whole` says whether all of the body may."""
        self.whole = whole
        self._names = module.names
        self._function = function
        self._scope = module.names.scopes[function]
        self._kept: list[ast.stmt] = []
        self.start: ast.stmt | None = None
        """The first statement that must move; None where moving only some changes what names
        stand for."""
        if not isinstance(function, ast.Lambda):
            self._split(function.body, nodes)

    def _split(self, body: list[ast.stmt], nodes: Sequence[ast.expr]) -> None:
        numbers = [n for n, stmt in enumerate(body) if any(x in nodes for x in ast.walk(stmt))]
        if not numbers:
            return
        self._kept, moved = body[: numbers[0]], body[numbers[0] :]
        bound = {
            name
            for name, bindings in self._scope.bindings.items()
            if any(self._inside(b.node, moved) for b in bindings)
        }
        rebound = any(
            not self._inside(b.node, moved) for name in bound for b in self._scope.bindings[name]
        )
        read = {n.id for stmt in self._kept for n in ast.walk(stmt) if isinstance(n, ast.Name)}
        if not rebound and not bound & read:
            self.start = body[numbers[0]]

    def _inside(self, node: ast.AST, statements: Sequence[ast.stmt]) -> bool:
        while node is not self._function and node in self._names.parent:
            if node in statements:
                return True
            node = self._names.parent[node]
        return False

    def own(self, expr: ast.expr) -> set[str]:
        """The names in an expression that the function itself assigns."""
        found = set()
        for name in self._loaded(expr):
            here = self._names.lookup(name.id, self._scope)
            bindings = here[1] if here is not None and here[0] is self._scope else []
            if any(b.kind not in ("param", "star") for b in bindings):
                found.add(name.id)
        return found

    def sees(self, expr: ast.expr) -> bool:
        """True if an expression means the same where the scope begins."""
        if not self._means_the_same(expr):
            return False
        own = self.own(expr)
        if not own and self.whole:
            return True
        return self.start is not None and all(map(self._before, own))

    def _means_the_same(self, expr: ast.expr) -> bool:
        for name in self._loaded(expr):
            there = self._names.lookup(name.id, self._names.scope(name))
            here = self._names.lookup(name.id, self._scope)
            if (there and there[0]) is not (here and here[0]):
                return False
        return True

    def _before(self, name: str) -> bool:
        """True for a name that is assigned once, before the code that moves."""
        bindings = self._scope.bindings[name]
        return len(bindings) == 1 and self._names.statement(bindings[0].node) in self._kept

    @staticmethod
    def _loaded(expr: ast.expr) -> Iterator[ast.Name]:
        return (node for node in ast.walk(expr) if isinstance(node, ast.Name))
