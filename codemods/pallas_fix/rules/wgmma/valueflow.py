"""Whether a loaded value can reach a store: through assignments, arithmetic and calls.

The answer errs on the side of yes: it does not follow the order of statements.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.names import Function, Names
from pallas_fix.rules.wgmma.shapes import passed

Variable = tuple[ast.AST, str]

_ABOUT = frozenset({"shape", "dtype", "ndim", "size"})


class ValueFlow:
    """The variables of a module, and which of them take values from which."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._next: dict[Variable, set[Variable]] = {}
        for node in ast.walk(names.tree):
            self._connect(node)

    def reaches(self, name: str, at: ast.stmt, value: ast.expr) -> bool:
        """True if the variable `name` of the statement `at` may take part in `value`."""
        start = self._variable(name, at)
        goal = set(self._used(value))
        seen: set[Variable] = set()
        pending = [start] if start is not None else []
        while pending:
            variable = pending.pop()
            if variable in goal:
                return True
            if variable not in seen:
                seen.add(variable)
                pending.extend(self._next.get(variable, ()))
        return False

    def _connect(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._flow(value, self._bound(target))
            case ast.AugAssign(target=target, value=value):
                self._flow(value, self._bound(target))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._flow(value, self._bound(target))
            case ast.NamedExpr(target=target, value=value):
                self._flow(value, self._bound(target))
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                self._flow(value, self._bound(target))
            case ast.Return(value=ast.expr() as value):
                function = next(self._names.enclosing(node), None)
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._flow(value, self._named(function.name, function))
            case ast.Call():
                self._call(node)

    def _call(self, call: ast.Call) -> None:
        function = self._names.definition(call.func)
        if function is not None:
            for name in _parameters(function):
                value = passed(call, function, name)
                if value is not None:
                    self._flow(value, [(function, name)])
        # A function that is handed over (`fori_loop`, `run_scoped`) may be given anything.
        given = [*call.args, *(k.value for k in call.keywords)]
        for argument in given:
            handed = self._names.definition(argument)
            if handed is not None:
                for other in given:
                    if other is not argument:
                        self._flow(other, [(handed, name) for name in _parameters(handed)])

    def _flow(self, value: ast.expr, targets: list[Variable]) -> None:
        for source in self._used(value):
            self._next.setdefault(source, set()).update(targets)

    def _used(self, expr: ast.AST) -> Iterator[Variable]:
        if isinstance(expr, ast.Attribute) and expr.attr in _ABOUT:
            return
        if isinstance(expr, ast.Name) and isinstance(expr.ctx, ast.Load):
            variable = self._variable(expr.id, expr)
            if variable is not None:
                yield variable
        for child in ast.iter_child_nodes(expr):
            yield from self._used(child)

    def _bound(self, target: ast.expr) -> list[Variable]:
        match target:
            case ast.Name(id=name):
                return self._named(name, target)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return [v for e in elements for v in self._bound(e)]
            case ast.Starred(value=inner) | ast.Subscript(value=inner):
                return self._bound(inner)
            case _:
                return []

    def _named(self, name: str, at: ast.AST) -> list[Variable]:
        variable = self._variable(name, at)
        return [variable] if variable is not None else []

    def _variable(self, name: str, at: ast.AST) -> Variable | None:
        found = self._names.lookup(name, self._names.scope(at))
        return (found[0].node, name) if found is not None else None


def _parameters(function: Function) -> list[str]:
    arguments = function.args
    named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    return [a.arg for a in named]
