"""Which `try` statements stand for two versions of jax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from pallas_fix.facts.guards.differences import differ, walk
from pallas_fix.facts.guards.objects import called
from pallas_fix.facts.names import Names
from pallas_fix.facts.optional import is_always_there

_ERRORS = frozenset({"AttributeError", "TypeError"})
_ANY = frozenset({"Exception", "BaseException"})
_MISSING = frozenset({"ImportError", "ModuleNotFoundError"})


class Tries:
    """The `try` statements of one module.

    One that catches AttributeError or TypeError is a shim as a whole. One that catches ImportError
    is one where a name is imported in it, not only modules. One that catches anything is too wide
    to be about jax, unless both of its arms give one name a value and the first is a bare name of
    jax, or both are short and use different names of one module of Pallas.
    """

    def __init__(self, names: Names) -> None:
        self._names = names

    @cached_property
    def _of_names(self) -> frozenset[ast.AST]:
        """The imports of names of jax, and those that the handler has other code for."""
        return frozenset(
            statement
            for statement, _ in self._names.optional
            if isinstance(statement, ast.ImportFrom)
            and (statement.module or "").partition(".")[0] == "jax"
            and not statement.level
        )

    def arms(self, node: ast.Try) -> Iterator[ast.AST]:
        """What of a `try` is left alone."""
        caught = self._caught(node)
        if caught & _MISSING and _only_modules(node.body):
            return
        if caught & _ERRORS or self._is_choice(node, caught):
            yield from (*node.body, *node.orelse, *node.handlers)
        elif caught & (_MISSING | _ANY) and self._stands_in(node):
            yield from (n for h in node.handlers for n in h.body if isinstance(n, ast.Assign))

    def is_shim(self, node: ast.AST) -> bool:
        """True where what is set in an arm of a statement tells of the version of jax."""
        if isinstance(node, ast.With):
            return is_suppressed(node) and self._mentions(node.body)
        if not isinstance(node, ast.Try):
            return False
        caught = self._caught(node)
        return bool(caught & _ERRORS and self._mentions(node.body)) or self._is_choice(node, caught)

    def _is_choice(self, node: ast.Try, caught: set[str]) -> bool:
        if caught & (_MISSING | _ANY) and self._imports_names(node):
            return True
        return bool(caught & _ANY) and self._is_about_jax(node)

    def _caught(self, node: ast.Try) -> set[str]:
        found: set[str] = set()
        for handler in node.handlers:
            if handler.type is None:
                found.add("BaseException")
                continue
            for part in ast.walk(handler.type):
                if isinstance(part, ast.Name):
                    found.add(part.id)
                    binding = self._names.binding(part, self._names.scope(part))
                    value = binding.value if binding is not None else None
                    inner = ast.walk(value) if value is not None else ()
                    found.update(n.id for n in inner if isinstance(n, ast.Name))
                elif isinstance(part, ast.Attribute):
                    found.add(part.attr)
        return found

    def _imports_names(self, node: ast.Try) -> bool:
        blocks = (node.body, *(handler.body for handler in node.handlers))
        return any(inner in self._of_names for block in blocks for inner in walk(block))

    def _stands_in(self, node: ast.Try) -> bool:
        """True where the handler gives a value to a name that the body imports from elsewhere."""
        bound = {name for statement, name in self._names.optional if statement in node.body}
        return any(bound.intersection(_assigned(handler.body)) for handler in node.handlers)

    def _is_about_jax(self, node: ast.Try) -> bool:
        instead = [statement for handler in node.handlers for statement in handler.body]
        both = set(_assigned(node.body)) & set(_assigned(instead))
        if both and any(self._is_bare(statement) for statement in node.body):
            return True
        return differ(self._names, node.body, instead) or self._gives(node.body, instead)

    def _gives(self, body: list[ast.stmt], instead: list[ast.stmt]) -> bool:
        """True where both arms give a value that one function makes, of Pallas or both of jax."""
        if len(body) != 1 or type(body[0]) is not type(instead[-1]):
            return False
        tried, done = self._named(body[0]), self._named(instead[-1])
        both = tried.startswith("jax.") and done.startswith("jax.")
        return both or "pallas" in tried or "pallas" in done

    def _named(self, statement: ast.stmt) -> str:
        """The path of the one name, or function, whose value a statement gives."""
        value = statement.value if isinstance(statement, ast.Return | ast.Assign) else None
        named = value.func if isinstance(value, ast.Call) else value
        return self._names.path(named) or "" if isinstance(named, ast.Attribute) else ""

    def _is_bare(self, statement: ast.stmt) -> bool:
        """True for `x = pl.load`, or `pl.load` alone: nothing is done but to name it."""
        value = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
        return isinstance(value, ast.Attribute) and self._is_jax(value)

    def _mentions(self, body: list[ast.stmt]) -> bool:
        return any(isinstance(n, ast.Name) and self._is_jax(n) for n in walk(body)) or any(
            isinstance(n, ast.Import | ast.ImportFrom) for n in walk(body)
        )

    def _is_jax(self, expr: ast.expr) -> bool:
        return (self._names.path(expr) or "").partition(".")[0] == "jax"


def is_suppressed(node: ast.With) -> bool:
    """True for `with contextlib.suppress(AttributeError)` and its like."""
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and called(call.func) == "suppress":
            names = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
            if names & (_ERRORS | _MISSING):
                return True
    return False


def _only_modules(body: list[ast.stmt]) -> bool:
    """True for a block that only asks whether there are some modules at all."""
    return all(
        isinstance(s, ast.Import | ast.ImportFrom) and all(is_always_there(s, a) for a in s.names)
        for s in body
    )


def _assigned(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.Assign):
            yield from (t.id for t in statement.targets if isinstance(t, ast.Name))
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
