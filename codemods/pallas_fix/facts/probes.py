"""Which expressions ask what this jax is, or has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from pallas_fix.facts.names import Names

_PROBES = frozenset({"hasattr", "getattr"})
_LISTINGS = frozenset({"dir", "vars"})
# What people call a flag or a function that somebody else keeps for them.
_CALLED = re.compile(
    r"(?<![a-z])version|Version|VERSION|(?<![a-z])legacy|LEGACY"
    r"|(?i:jax_?(?:is_?)?(?:new|old|ge|gt|le|lt)(?![a-z]))"
    r"|(?i:(?:^|_)(?:new|old)(?:er)?_?(?:jax|pallas|api))"
)
_SIGNATURES = frozenset({"inspect.signature", "inspect.getfullargspec"})


class Probes:
    """The tests of one module that are about versions, names or keywords."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def asks(self, test: ast.expr, depth: int = 0) -> bool:
        """True if the value of an expression depends on what this jax is or has."""
        for node in ast.walk(test):
            if isinstance(node, ast.Call):
                if self._is_call(node, depth):
                    return True
            elif isinstance(node, ast.Attribute):
                if _CALLED.search(node.attr) or node.attr == "__dict__":
                    return True
                if depth == 0 and node.attr in self._attributes:
                    return True
            elif isinstance(node, ast.Name) and self._is_flag(node, depth):
                return True
        return False

    def _is_call(self, node: ast.Call, depth: int) -> bool:
        func = node.func
        if isinstance(func, ast.Name) and func.id in _PROBES | _LISTINGS:
            return True
        if self._names.qualified(func) in _SIGNATURES:
            return True
        definition = self._names.definition(func)
        if depth >= 3 or not isinstance(definition, ast.FunctionDef):
            return False
        returns = (n.value for n in ast.walk(definition) if isinstance(n, ast.Return))
        return any(self.asks(r, depth + 1) for r in returns if r is not None)

    def _is_flag(self, node: ast.Name, depth: int) -> bool:
        if _CALLED.search(node.id):
            return True
        names = self._names
        binding = names.binding(node, names.scope(node))
        if binding is None or depth > 3:
            found = names.lookup(node.id, names.scope(node))
            bindings = found[1] if found else []
            # A flag set under a test, in both arms: the test is what counts.
            constants = [b for b in bindings if isinstance(b.value, ast.Constant)]
            return bool(bindings) and len(constants) == len(bindings) and node.id.isupper()
        if binding.kind == "import":
            return node.id.isupper() and not binding.target.startswith("jax.")
        value = binding.value
        return binding.kind == "assign" and value is not None and self.asks(value, depth + 1)

    @cached_property
    def _attributes(self) -> frozenset[str]:
        """The attributes of objects of the file that are flags: `self.old = version < (0, 7)`."""
        return frozenset(self._flags())

    def _flags(self) -> Iterator[str]:
        for node in ast.walk(self._names.tree):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            in_class = isinstance(self._names.parent[node], ast.ClassDef)
            words = [
                target.attr if isinstance(target, ast.Attribute) else target.id
                for target in targets
                if isinstance(target, ast.Attribute) or (in_class and isinstance(target, ast.Name))
            ]
            if words and self._is_about_jax(node.value) and self.asks(node.value, 1):
                yield from words

    def _is_about_jax(self, value: ast.expr) -> bool:
        """True for a decision in which jax itself or a flag stands, and not only some object."""
        if not isinstance(value, _DECISIONS):
            return False
        for node in ast.walk(value):
            if isinstance(node, ast.Name):
                path = self._names.path(node) or ""
                if path.partition(".")[0] == "jax" or self._is_flag(node, 1):
                    return True
        return False


_DECISIONS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call, ast.Name)
