"""Which assignment a use of a local name reads, where only one can be meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.facts.names import Function, Names, Scope

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True)
class Parameter:
    """The name is a parameter of a function."""

    function: Function
    name: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """The name was last bound by a statement, to a value."""

    statement: ast.stmt
    value: ast.expr


@dataclass(frozen=True, slots=True)
class Updated:
    """The name was last bound by `name op= value`."""

    statement: ast.AugAssign


Definition = Parameter | Assigned | Updated


class Reaching:
    """Finds the definition that reaches a use of a name."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def of(self, name: ast.Name) -> Definition | None:
        """What `name` was last bound to, or None where that is not certain."""
        return self.before(name.id, name, self._names.scope(name))

    def before(self, name: str, node: ast.AST, scope: Scope) -> Definition | None:
        """What `name`, as seen from `scope`, is bound to just before the statement of `node`."""
        found = self._names.lookup(name, scope)
        if found is None:
            return None
        owner, bindings = found
        if len(bindings) == 1:
            return self._single(owner, name)
        if owner is not scope or not isinstance(owner.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        return self._backwards(name, self._names.statement(node), owner)

    def _single(self, owner: Scope, name: str) -> Definition | None:
        binding = owner.bindings[name][0]
        if binding.kind == "param" and isinstance(owner.node, Function):
            return Parameter(owner.node, name)
        if binding.kind == "assign" and binding.value is not None:
            return Assigned(self._names.statement(binding.node), binding.value)
        return None

    def _backwards(self, name: str, statement: ast.stmt, owner: Scope) -> Definition | None:
        while True:
            for earlier in reversed(_before(self._names.parent[statement], statement)):
                if binds(earlier, name):
                    return _direct(earlier, name)
            parent = self._names.parent[statement]
            while not isinstance(parent, ast.stmt):
                if isinstance(parent, ast.ExceptHandler | ast.match_case):
                    return None
                parent = self._names.parent[parent]
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                kinds = [b.kind for b in owner.bindings[name]]
                return Parameter(parent, name) if kinds.count("param") == 1 else None
            if isinstance(parent, (*_LOOPS, ast.Try, ast.With, ast.AsyncWith)) and binds(
                parent, name
            ):
                return None
            statement = parent


def _before(parent: ast.AST, statement: ast.stmt) -> list[ast.stmt]:
    """The statements before `statement` in its block."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and statement in block:
            return block[: block.index(statement)]
    return []


def binds(node: ast.stmt, name: str) -> bool:
    """True if a statement, or one inside it in the same scope, may bind or delete `name`."""
    for inner in _same_scope(node):
        match inner:
            case ast.Name(id=target, ctx=ast.Store() | ast.Del()) if target == name:
                return True
            case ast.FunctionDef(name=target) | ast.AsyncFunctionDef(name=target):
                if target == name or _takes_over(inner, name):
                    return True
            case ast.ClassDef(name=target) if target == name:
                return True
            case ast.alias(name=full, asname=alias):
                if (alias or full.partition(".")[0]) == name:
                    return True
            case ast.ExceptHandler(name=target) if target == name:
                return True
            case ast.MatchAs(name=target) | ast.MatchStar(name=target) if target == name:
                return True
    return False


def _takes_over(function: ast.AST, name: str) -> bool:
    """True where a function inside declares the name `nonlocal`."""
    return any(isinstance(n, ast.Nonlocal) and name in n.names for n in ast.walk(function))


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from _same_scope(child)


def _direct(statement: ast.stmt, name: str) -> Definition | None:
    match statement:
        case ast.Assign(targets=[*_, ast.Name(id=target)], value=value) if target == name:
            return Assigned(statement, value)
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
            return Assigned(statement, value)
        case ast.AugAssign(target=ast.Name(id=target)) if target == name:
            return Updated(statement)
        case _:
            return None
