"""Where a value that reaches an argument is made: arms, variables, parameters, functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.facts import Facts
from pallas_fix.facts.asked import returned
from pallas_fix.facts.names import Function, Scope
from pallas_fix.facts.scopes import Binding, defaults


@dataclass(frozen=True, slots=True)
class Source:
    """An expression that makes a value.

    `alone` is false where something but the argument may see the value, `direct` where variables
    or conditions stand between the two.
    """

    node: ast.expr
    alone: bool = True
    direct: bool = True


class Sources:
    """Follows what reaches the argument `keyword=` of calls of one module."""

    def __init__(self, module: Facts, keyword: str) -> None:
        self._module = module
        self._names = module.names
        self._keyword = keyword
        self._followed: set[tuple[int, str]] = set()
        self._checked: dict[tuple[int, str], bool] = {}

    def of(self, value: ast.expr) -> list[Source]:
        """The expressions that make what an argument is given, as far as the file shows them."""
        self._followed.clear()
        return list(self._ends(Source(value)))

    def _ends(self, source: Source) -> Iterator[Source]:
        match source.node:
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._each([body, orelse], source.alone)
            case ast.BoolOp(values=arms):
                yield from self._each(arms, source.alone)
            case ast.Name(id=name) as node:
                found = self._names.lookup(name, self._names.scope(node))
                if found is None or (id(found[0]), name) in self._followed:
                    return
                self._followed.add((id(found[0]), name))
                alone = source.alone and self._stays(found[0], name)
                for binding in found[1]:
                    yield from self._each(self._given(binding), alone)
            case ast.Attribute(attr=word) as node:
                values = list(self._held(node))
                alone = source.alone and all(map(self._lands, self._uses(word)))
                yield from self._each(values, alone) if values else [source]
            case ast.Call(func=func) as node:
                function = self._names.definition(func)
                if not isinstance(function, ast.FunctionDef) or function.decorator_list:
                    yield source
                    return
                alone = source.alone and self._stays_of(function)
                yield from self._each(list(returned(function)), alone)
            case _:
                yield source

    def _each(self, values: list[ast.expr], alone: bool) -> Iterator[Source]:
        for value in values:
            yield from self._ends(Source(value, alone, direct=False))

    def _held(self, node: ast.Attribute) -> Iterator[ast.expr]:
        """What an attribute of a class of the file is given: in its body, and by `self`."""
        owner = self._class(node)
        if owner is None or (id(owner), node.attr) in self._followed:
            return
        self._followed.add((id(owner), node.attr))
        for binding in owner.bindings.get(node.attr, ()):
            yield from self._given(binding)
        for part in ast.walk(owner.node):
            match part:
                case ast.Assign(targets=[ast.Attribute(attr=node.attr) as target], value=value):
                    if self._class(target) is owner:
                        yield value

    def _class(self, node: ast.Attribute) -> Scope | None:
        """The scope of the class of the file that an attribute is of: `Name.x`, `self.x`."""
        if not isinstance(node.value, ast.Name):
            return None
        binding = self._names.binding(node.value, self._names.scope(node))
        if binding is not None and isinstance(binding.node, ast.ClassDef):
            return self._names.scopes[binding.node]
        if node.value.id not in ("self", "cls") or binding is None or binding.kind != "param":
            return None
        found = self._names.lookup(node.value.id, self._names.scope(node))
        above = found[0].parent if found is not None else None
        return above if above is not None and isinstance(above.node, ast.ClassDef) else None

    def _uses(self, word: str) -> Iterator[ast.expr]:
        for node in ast.walk(self._module.tree):
            match node:
                case ast.Attribute(attr=found, ctx=ast.Load()) if found == word:
                    yield node

    def _given(self, binding: Binding) -> list[ast.expr]:
        """What a binding gives a name: an assigned value, or a default and what callers pass."""
        if binding.kind == "assign" and binding.value is not None:
            return [binding.value]
        if binding.kind != "param" or not isinstance(binding.node, ast.arg):
            return []
        arguments = self._names.parent[binding.node]
        function = self._names.parent[arguments]
        assert isinstance(arguments, ast.arguments)
        default = defaults(arguments).get(binding.node)
        found = [default] if default is not None else []
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for call in self._names.callers.get(function, ()):
                value = self._passed(call, function, binding.node)
                if value is not None:
                    found.append(value)
        return found

    def _passed(self, call: ast.Call, function: Function, parameter: ast.arg) -> ast.expr | None:
        for keyword in call.keywords:
            if keyword.arg == parameter.arg:
                return keyword.value
        named = self._positional(call, function)
        for value, other in zip(call.args, named, strict=False):
            if isinstance(value, ast.Starred):
                return None
            if other is parameter:
                return value
        return None

    def _positional(self, call: ast.Call, function: Function) -> list[ast.arg]:
        """The parameters that the positional arguments of a call go to, in order."""
        named = [*function.args.posonlyargs, *function.args.args]
        above = self._names.scopes[function].parent
        method = above is not None and isinstance(above.node, ast.ClassDef)
        return named[1:] if method and isinstance(call.func, ast.Attribute) else named

    def _stays(self, scope: Scope, name: str) -> bool:
        """True if a variable goes to the argument, and nowhere else."""
        key = (id(scope), name)
        if key not in self._checked:
            self._checked[key] = True
            self._checked[key] = all(map(self._lands, self._loads(scope, name)))
        return self._checked[key]

    def _stays_of(self, function: ast.FunctionDef) -> bool:
        """True if all that a function returns goes to the argument."""
        scope = self._names.scopes[function].parent
        if scope is None:
            return False
        method = isinstance(scope.node, ast.ClassDef)
        uses = self._uses(function.name) if method else self._loads(scope, function.name)
        for node in uses:
            call = self._names.parent[node]
            if not isinstance(call, ast.Call) or call.func is not node or not self._lands(call):
                return False
        return True

    def _loads(self, scope: Scope, name: str) -> Iterator[ast.expr]:
        for node in ast.walk(self._module.tree):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                found = self._names.lookup(name, self._names.scope(node))
                if found is not None and found[0] is scope:
                    yield node

    def _lands(self, node: ast.expr) -> bool:
        """True if the value of an expression goes to the argument, or is only tested."""
        around = self._names.parent[node]
        match around:
            case ast.keyword(arg=word):
                call = self._names.parent[around]
                return word == self._keyword or self._enters(call, word)
            case ast.Call(args=args) if node in args:
                return self._enters(around, args.index(node))
            case ast.IfExp(test=test):
                return test is node or self._lands(around)
            case ast.BoolOp():
                return self._lands(around)
            case ast.If() | ast.UnaryOp(op=ast.Not()):
                return True
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return True
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                return self._stored(target)
            case ast.Dict(keys=keys, values=values):
                key = keys[values.index(node)] if node in values else None
                return isinstance(key, ast.Constant) and key.value == self._keyword
            case ast.Return():
                function = next(self._names.enclosing(node), None)
                return isinstance(function, ast.FunctionDef) and self._stays_of(function)
        return False

    def _stored(self, target: ast.expr) -> bool:
        match target:
            case ast.Name(id=name):
                found = self._names.lookup(name, self._names.scope(target))
                return found is not None and self._stays(found[0], name)
            case ast.Subscript(slice=ast.Constant(value=key)):
                return bool(key == self._keyword)
        return False

    def _enters(self, call: ast.AST, place: int | str | None) -> bool:
        """True if an argument goes to a parameter of the file that goes to the argument."""
        function = self._names.definition(call.func) if isinstance(call, ast.Call) else None
        if function is None or place is None or not isinstance(call, ast.Call):
            return False
        parameters = self._positional(call, function)
        if isinstance(place, str):
            taken = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            parameters = [parameter for parameter in taken if parameter.arg == place]
            place = 0
        elif any(isinstance(value, ast.Starred) for value in call.args[:place]):
            return False
        home = self._names.scopes[function]
        return place < len(parameters) and self._stays(home, parameters[place].arg)
