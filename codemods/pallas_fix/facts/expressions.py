"""What expressions are worth during the walk, and which refs they read on the way."""

from __future__ import annotations

import ast
from abc import abstractmethod
from fractions import Fraction

from pallas_fix.facts.calls import Calls
from pallas_fix.facts.combining import UNROLL, arithmetic, constant, grid_test, pick
from pallas_fix.facts.constants import UNKNOWN, Value
from pallas_fix.facts.indexing import is_whole
from pallas_fix.facts.linear import Linear, combined, linear
from pallas_fix.facts.names import Function
from pallas_fix.facts.scopes import FUNCTIONS
from pallas_fix.facts.values import (
    OTHER,
    Callee,
    Frame,
    Items,
    Known,
    Loaded,
    Ref,
    Table,
    View,
)

_REPEATED = (ast.For, ast.AsyncFor, ast.While)
_META = frozenset({"shape", "dtype", "ndim", "size", "aval", "inner_aval", "memory_space"})


class Expressions(Calls):
    """The part of the walker that evaluates expressions."""

    functions: tuple[Function, ...]
    site: tuple[int, ...]

    @abstractmethod
    def assign(
        self,
        target: ast.expr,
        value: object,
        frame: Frame,
        statement: ast.stmt,
        expr: ast.expr | None,
    ) -> None: ...

    def eval(self, expr: ast.expr | None, frame: Frame | None) -> object:
        """The value of an expression; what it does to refs is written down on the way."""
        match expr:
            case None:
                return OTHER
            case ast.Constant():
                return Known(self.constants.fold(expr), expr)
            case ast.Name():
                return self.name(expr, frame)
            case ast.Call():
                return self.evaluate_call(expr, frame)
            case ast.Lambda():
                return Callee(expr, frame)
            case ast.Attribute(value=base, attr=attr):
                return self.attribute(expr, base, attr, frame)
            case ast.Subscript(value=base, slice=index):
                return self.subscript(expr, base, index, frame)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return self.display(elements, frame)
            case ast.Dict(keys=keys, values=values):
                parts = [self.eval(v, frame) for v in values]
                names = [self.eval(k, frame) for k in keys]
                known = [n.value for n in names if isinstance(n, Known)]
                whole = len(known) == len(parts)
                return Table(dict(zip(known, parts, strict=True))) if whole else OTHER
            case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.BoolOp():
                return self.operation(expr, frame)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = self.eval(test, frame)
                if isinstance(chosen, Known) and chosen.value is not UNKNOWN:
                    return self.eval(body if chosen.value else orelse, frame)
                one, two = self.eval(body, frame), self.eval(orelse, frame)
                if one is not two:
                    self.escape(one, expr)
                    self.escape(two, expr)
                return one if one is two else OTHER
            case ast.NamedExpr(target=target, value=value):
                result = self.eval(value, frame)
                if frame is not None:
                    frame.variables[target.id] = result
                return result
            case ast.ListComp() | ast.GeneratorExp():
                return self.comprehension(expr, frame)
            case _:
                for child in ast.iter_child_nodes(expr):
                    if isinstance(child, ast.expr):
                        self.eval(child, frame)
                return OTHER

    def display(self, elements: list[ast.expr], frame: Frame | None) -> object:
        found: list[object] = []
        for element in elements:
            if isinstance(element, ast.Starred):
                inner = self.eval(element.value, frame)
                if not isinstance(inner, Items) or inner.open_front:
                    self.escape(inner, element)
                    return OTHER
                found.extend(inner.items)
            else:
                found.append(self.eval(element, frame))
        return Items(tuple(found))

    def comprehension(self, expr: ast.ListComp | ast.GeneratorExp, frame: Frame | None) -> object:
        inner = Frame(expr, frame)
        generator = expr.generators[0]
        over = self.eval(generator.iter, frame)
        simple = len(expr.generators) == 1 and not generator.ifs
        known = isinstance(over, Items) and not over.open_front and len(over.items) <= UNROLL
        if not simple or not known or not isinstance(over, Items):
            with self.inside("loop", expr):
                self.assign(generator.target, OTHER, inner, ast.Pass(), None)
                self.escape(self.eval(expr.elt, inner), expr)
            return OTHER
        found, outer = [], self.site
        for index, item in enumerate(over.items):
            self.site = (*outer, index)
            self.assign(generator.target, item, inner, ast.Pass(), None)
            found.append(self.eval(expr.elt, inner))
        self.site = outer
        return Items(tuple(found))

    def name(self, expr: ast.Name, frame: Frame | None) -> object:
        found = self.names.lookup(expr.id, self.names.scope(expr))
        if found is not None:
            current = frame
            while current is not None:
                if current.node is found[0].node and expr.id in current.variables:
                    return current.variables[expr.id]
                current = current.parent
        definition = self.names.definition(expr)
        if definition is not None:
            return self._defined(definition, frame)
        value = self.constants.fold(expr)
        if value is not UNKNOWN:
            return constant(value, expr)
        origin = self.constants.origin(expr)
        if isinstance(origin, ast.Call) and self._is_callable(origin):
            return self.eval(origin, self._closure(origin, frame))
        return OTHER

    def _defined(self, definition: Function, frame: Frame | None) -> object:
        """A function that is not being walked, with the refs that its decorators bind."""
        value: object = Callee(definition, self._closure(definition, frame))
        for decorator in reversed(getattr(definition, "decorator_list", [])):
            scoping = isinstance(decorator, ast.Call) and (
                self.names.qualified(decorator.func) == "pl.with_scoped"
            )
            if scoping and isinstance(value, Callee):
                value = self.decorate(decorator, value, frame)
        return value

    def _is_callable(self, call: ast.Call) -> bool:
        """True for calls that only wrap a function: following a name to them runs nothing."""
        name = self.names.qualified(call.func)
        if name in ("functools.partial", "jax.jit"):
            return True
        inner = call.func
        return isinstance(inner, ast.Call) and self.names.qualified(inner.func) == "pl.with_scoped"

    def _closure(self, node: ast.AST, frame: Frame | None) -> Frame | None:
        """The frame in which a definition was made, as far as it is being walked."""
        home = next(self.names.enclosing(node), None)
        while frame is not None and frame.node is not home:
            frame = frame.parent
        return frame

    def attribute(
        self, expr: ast.Attribute, base: ast.expr, attr: str, frame: Frame | None
    ) -> object:
        definition = self.names.definition(expr)
        if definition is not None:
            method = isinstance(base, ast.Name) and base.id in ("self", "cls")
            decorators = getattr(definition, "decorator_list", [])
            static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)
            return Callee(definition, None, (OTHER,) if method and not static else ())
        value = self.constants.fold(expr)
        if value is not UNKNOWN:
            return constant(value, expr)
        held = self.eval(base, frame)
        if not isinstance(held, Ref | View):
            return OTHER
        ref = held if isinstance(held, Ref) else held.ref
        if attr == "at":
            return View(ref, expr, whole=isinstance(held, Ref) or held.whole)
        if attr in _META:
            self.emit("meta", expr, ref, how=held)
            return OTHER
        return View(ref, expr, whole=False)

    def subscript(
        self, expr: ast.Subscript, base: ast.expr, index: ast.expr, frame: Frame | None
    ) -> object:
        held = self.eval(base, frame)
        position = self.eval(index, frame)
        if isinstance(held, Items | Table):
            picked = pick(held, position)
            if picked is OTHER:
                self.escape(held, expr)
            return picked
        if isinstance(held, Ref | View):
            ref = held if isinstance(held, Ref) else held.ref
            whole = is_whole(index, self.names) and (isinstance(held, Ref) or held.whole)
            if isinstance(base, ast.Attribute) and base.attr == "at":
                return View(ref, expr, whole)
            self.emit("load", expr, ref, how=held, index=index, whole=whole)
            return Loaded(ref, expr, whole)
        return OTHER

    def operation(self, expr: ast.expr, frame: Frame | None) -> object:
        children = [c for c in ast.iter_child_nodes(expr) if isinstance(c, ast.expr)]
        parts = [self.eval(c, frame) for c in children]
        known = [(c, p) for c, p in zip(children, parts, strict=True) if isinstance(p, Known)]
        if len(known) == len(parts):
            local = self._locals(expr, frame)
            value = self.constants.fold(expr, local)
            return Known(value, expr, tuple(known)) if value is not UNKNOWN else OTHER
        if isinstance(expr, ast.BinOp):
            made = arithmetic(expr, parts)
            return self._sum(expr, children, parts) if made is OTHER else made
        if isinstance(expr, ast.Compare) and len(parts) == 2 and isinstance(expr.ops[0], ast.Eq):
            return grid_test(parts[0], parts[1])
        for part in parts:
            if isinstance(part, Ref):
                self.emit("meta", expr, part, how=part)
        return OTHER

    def _sum(self, expr: ast.BinOp, children: list[ast.expr], parts: list[object]) -> object:
        """What an operator makes of numbers of which some are not known."""
        left, right = map(self.number, children, parts)
        if left is None or right is None:
            return OTHER
        made = combined(expr.op, left, right)
        if made is None:
            return OTHER
        known = [(c, p) for c, p in zip(children, parts, strict=True) if isinstance(p, Known)]
        inner = [part for p in parts if isinstance(p, Linear) for part in p.parts]
        return Linear(made.terms, made.rest, expr, (*known, *inner))

    def number(self, expr: ast.expr, value: object) -> Linear | None:
        """A number as a sum; one that is the same all through the walk is known by its name."""
        if value is not OTHER:
            return linear(value)
        base = expr
        if isinstance(base, ast.Subscript) and isinstance(base.value, ast.Attribute):
            base = base.value.value if base.value.attr == "shape" else base
        owner = self._owner(base) if isinstance(base, ast.Name) and self.functions else None
        return Linear(((f"{ast.unparse(expr)}@{owner}", Fraction(1)),)) if owner else None

    def _owner(self, name: ast.Name) -> str | None:
        """The function of a variable that is set once, before all else or as it begins."""
        found = self.names.lookup(name.id, self.names.scope(name))
        if found is None or len(found[1]) != 1:
            return None
        scope, node = found[0], found[1][0].node
        outermost = self.functions[0]
        around = (outermost, self.names.tree, *self.names.enclosing(outermost))
        while scope.node in around and node is not scope.node:
            node = self.names.parent[node]
            if isinstance(node, (*_REPEATED, *FUNCTIONS)) and node is not scope.node:
                return None
        return scope.qualname or "<module>" if scope.node in around else None

    def _locals(self, expr: ast.expr, frame: Frame | None) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for node in ast.walk(expr):
            if isinstance(node, ast.Name):
                value = self.name(node, frame)
                if isinstance(value, Known):
                    found[node.id] = value.value
        return found

    def escape(self, value: object, node: ast.AST) -> None:
        """Note that refs in a value went where the walk cannot follow."""
        match value:
            case Ref():
                self.emit("escape", node, value, how=value)
            case View(ref=ref):
                self.emit("escape", node, ref, how=value)
            case Items(items=items):
                for item in items:
                    self.escape(item, node)
            case Table(items=table):
                for item in table.values():
                    self.escape(item, node)
            case Callee(args=args, kwargs=kwargs):
                for item in (*args, *(v for _, v in kwargs)):
                    self.escape(item, node)
                self._unknown_run(value)

    def _unknown_run(self, callee: Callee) -> None:
        """A function handed to unknown code: it may run at any time, with any arguments."""
        if callee.node in self.functions or isinstance(callee.frame, type(None)):
            return
        with self.inside("unknown", callee.node):
            self.call(callee, [OTHER] * 8, {})
