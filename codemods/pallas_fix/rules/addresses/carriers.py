"""Variables that hold nothing but addresses: where a number was, the ref can be instead.

In `body(128, 0)` of `def body(acc_addr, pop_addr)` the numbers give way to refs, and the
parameters carry them, if all that is done with the parameters is to name accumulators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from pallas_fix.facts import Facts
from pallas_fix.facts.names import Function
from pallas_fix.facts.scopes import Scope

_SEQUENCES = frozenset({"enumerate", "zip", "reversed", "list", "tuple"})

Variable = tuple[Scope, str]


class Carriers:
    """Knows which variables carry addresses to `places`, and do nothing else."""

    def __init__(self, module: Facts, places: Set[ast.expr]) -> None:
        self._module = module
        self._names = module.names
        self._places = places
        self._clean: dict[tuple[int, str], bool] = {}
        self.parameters: list[ast.arg] = []
        """The parameters among the variables that carry."""
        self.sources: set[ast.expr] = set()
        """The numbers that these variables are bound to: all of them must give way."""

    def only(self, name: ast.Name) -> bool:
        """True if the variable carries nothing but addresses, from wherever they are written."""
        before = (dict(self._clean), set(self.sources), list(self.parameters))
        found = self._names.lookup(name.id, self._names.scope(name))
        if found is not None and self._variable((found[0], name.id)):
            return True
        self._clean, self.sources, self.parameters = before
        return False

    def carry(self, expr: ast.expr) -> bool:
        """True if one of the variables that carry is read in an expression."""
        for node in ast.walk(expr):
            if isinstance(node, ast.Name):
                found = self._names.lookup(node.id, self._names.scope(node))
                if found is not None and (id(found[0]), node.id) in self._clean:
                    return True
        return False

    def is_source(self, node: ast.expr) -> bool:
        """True for a number that goes nowhere but into one variable."""
        parent = self._names.parent[node]
        while isinstance(parent, ast.IfExp) and parent.test is not node:
            node, parent = parent, self._names.parent[parent]
        if isinstance(parent, ast.keyword):
            return True
        if isinstance(parent, ast.Assign):
            return len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name)
        if isinstance(parent, ast.Call) and node in parent.args:
            inner = self._names.definition(parent.func)
            if inner is not None or self._partial(parent) is not None:
                return True
        while isinstance(parent, ast.Tuple | ast.List | ast.Call) and _is_sequence(parent):
            node, parent = parent, self._names.parent[parent]
        return isinstance(parent, ast.For) and parent.iter is node

    def _variable(self, variable: Variable) -> bool:
        key = (id(variable[0]), variable[1])
        if key not in self._clean:
            self._clean[key] = True
            self._clean[key] = self._bound(variable) and all(
                self._used(load) for load in self._loads(variable)
            )
        return self._clean[key]

    def _bound(self, variable: Variable) -> bool:
        """True if all that the variable is bound to are addresses, or other such variables."""
        scope, name = variable
        for binding in scope.bindings[name]:
            if binding.kind == "param" and isinstance(binding.node, ast.arg):
                if not self._parameter(scope, binding.node):
                    return False
            elif binding.kind == "assign" and binding.value is not None:
                if not self._source(binding.value):
                    return False
            elif binding.kind not in ("for", "unpack") or not isinstance(binding.node, ast.For):
                return False
        return not isinstance(scope.node, ast.Module | ast.ClassDef)

    def _parameter(self, scope: Scope, node: ast.arg) -> bool:
        function = scope.node
        if not isinstance(function, ast.FunctionDef) or function.decorator_list:
            return False
        self.parameters.append(node)
        arguments = function.args
        if node not in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            return False
        given = [self._given(use, function, node.arg) for use in self._references(function)]
        return bool(given) and all(g is not None and self._source(g) for g in given)

    def _source(self, expr: ast.expr) -> bool:
        """True for a number, and for a variable that only carries one."""
        if isinstance(expr, ast.IfExp):
            return self._source(expr.body) and self._source(expr.orelse)
        if isinstance(expr, ast.Name):
            found = self._names.lookup(expr.id, self._names.scope(expr))
            if found is None:
                return False
            if not isinstance(found[0].node, ast.Module):
                return self._variable((found[0], expr.id))
        self.sources.add(expr)
        return not isinstance(expr, ast.Starred)

    def _given(self, use: ast.expr, function: Function, name: str) -> ast.expr | None:
        """What a call, or a partial application, passes for a parameter."""
        call = self._names.parent[use]
        if not isinstance(call, ast.Call):
            return None
        arguments = call.args
        if call.func is not use:
            if self._partial(call) is not function:
                return None
            arguments = arguments[1:]
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        named = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        position = named.index(name) if name in named else len(arguments)
        before = arguments[: position + 1]
        if len(before) <= position or any(isinstance(a, ast.Starred) for a in before):
            return None
        return before[position]

    def _partial(self, call: ast.Call) -> Function | None:
        if self._names.qualified(call.func) != "functools.partial" or not call.args:
            return None
        return self._names.definition(call.args[0])

    def _references(self, function: Function) -> Iterator[ast.expr]:
        for node in ast.walk(self._module.tree):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            if isinstance(node.ctx, ast.Load) and self._names.definition(node) is function:
                yield node

    def _loads(self, variable: Variable) -> Iterator[ast.Name]:
        scope, name = variable
        for node in ast.walk(scope.node):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                found = self._names.lookup(name, self._names.scope(node))
                if found is not None and found[0] is scope:
                    yield node

    def _used(self, load: ast.Name) -> bool:
        """True where an address is named, or handed to a variable that only carries addresses."""
        if load in self._places:
            return True
        parent = self._names.parent[load]
        if isinstance(parent, ast.Assign):
            target = parent.targets[0]
            plain = len(parent.targets) == 1 and isinstance(target, ast.Name)
            return plain and isinstance(target, ast.Name) and self._variable_of(target)
        keyword = parent.arg if isinstance(parent, ast.keyword) else None
        call = self._names.parent[parent] if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call):
            return False
        function = self._names.definition(call.func) or self._partial(call)
        if function is None:
            return False
        if keyword is None:
            keyword = self._position(call, function, load)
        scope = self._names.scopes[function]
        known = keyword is not None and keyword in scope.bindings
        return known and self._variable((scope, str(keyword)))

    def _variable_of(self, target: ast.Name) -> bool:
        found = self._names.lookup(target.id, self._names.scope(target))
        return found is not None and self._variable((found[0], target.id))

    def _position(self, call: ast.Call, function: Function, load: ast.Name) -> str | None:
        direct = self._names.definition(call.func) is function
        arguments = call.args if direct else call.args[1:]
        named = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        for name, given in zip(named, arguments, strict=False):
            if isinstance(given, ast.Starred):
                return None
            if given is load:
                return name
        return None


def _is_sequence(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _SEQUENCES
    return True
