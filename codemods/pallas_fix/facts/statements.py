"""What statements do during the walk: assignments, loops, conditions, local functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pallas_fix.facts.combining import UNROLL
from pallas_fix.facts.constants import UNKNOWN
from pallas_fix.facts.expressions import Expressions
from pallas_fix.facts.indexing import is_whole
from pallas_fix.facts.values import OTHER, Callee, Frame, GridTest, Items, Known, Ref, View


class Statements(Expressions):
    """The part of the walker that runs statements."""

    def block(self, statements: Sequence[ast.stmt], frame: Frame) -> object:
        """Run statements; the value is what they return, where all paths return the same."""
        result: object = None
        for statement in statements:
            if isinstance(statement, ast.Return):
                value = self.eval(statement.value, frame) if statement.value else OTHER
                return value if result is None or result is value else OTHER
            value = self.execute(statement, frame)
            if value is not None:
                result = value if result is None or result is value else OTHER
        return OTHER if result is None else result

    def execute(self, node: ast.stmt, frame: Frame) -> object:
        """Run one statement; the value of a `return` inside it, else None."""
        match node:
            case ast.Expr(value=value):
                self.eval(value, frame)
            case ast.Assign(targets=targets, value=value):
                result = self.eval(value, frame)
                for target in targets:
                    self.assign(target, result, frame, node, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.eval(value, frame), frame, node, value)
            case ast.AugAssign(target=target, value=value):
                self.update(target, frame, node, value, self.eval(value, frame))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define(node, frame)
            case ast.If(test=test):
                return self.conditional(node, self.eval(test, frame), frame)
            case ast.For() | ast.AsyncFor():
                return self.loop(node, frame)
            case ast.While(test=test, body=body):
                self.eval(test, frame)
                with self._repeated(node, frame):
                    return self._inner(body, frame)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    self.eval(item.context_expr, frame)
                return self._inner(body, frame)
            case ast.Try() | ast.TryStar():
                return self.attempt(node, frame)
            case ast.Match(subject=subject, cases=cases):
                self.eval(subject, frame)
                for case in cases:
                    with self.inside("branch", case):
                        self._inner(case.body, frame)
            case ast.Assert(test=test):
                self.eval(test, frame)
            case ast.Delete() | ast.ClassDef():
                pass
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self.eval(child, frame)
        return None

    def _inner(self, statements: Sequence[ast.stmt], frame: Frame) -> object:
        result = self.block(statements, frame)
        returns = any(isinstance(n, ast.Return) for s in statements for n in ast.walk(s))
        return result if returns else None

    def attempt(self, node: ast.Try | ast.TryStar, frame: Frame) -> object:
        with self.inside("branch", node):
            result = self._inner(node.body, frame)
        for handler in node.handlers:
            with self.inside("branch", handler):
                self._inner(handler.body, frame)
        for block in (node.orelse, node.finalbody):
            self._inner(block, frame)
        return result

    def conditional(self, node: ast.If, test: object, frame: Frame) -> object:
        if isinstance(test, Known):
            return self._inner(node.body if test.value else node.orelse, frame)
        grid = test if isinstance(test, GridTest) else None
        before = dict(frame.variables)
        with self.inside("branch", node, grid):
            result = self._inner(node.body, frame)
        after, frame.variables = frame.variables, before
        if node.orelse:
            with self.inside("branch", node):
                other = self._inner(node.orelse, frame)
            result = result if other is None else other
        for name, value in after.items():
            if frame.variables.get(name, value) is not value:
                frame.variables[name] = OTHER
            else:
                frame.variables[name] = value
        return result

    def loop(self, node: ast.For | ast.AsyncFor, frame: Frame) -> object:
        over = self.eval(node.iter, frame)
        passes = over.items if isinstance(over, Items) and not over.open_front else None
        if passes is None or len(passes) > UNROLL:
            with self._repeated(node, frame):
                self.assign(node.target, OTHER, frame, node, None)
                return self._inner([*node.body, *node.orelse], frame)
        outer = self.site
        for index, value in enumerate(passes):
            self.site = (*outer, index)
            with self.inside("unrolled", node):
                self.assign(node.target, value, frame, node, None)
                self._inner(node.body, frame)
        self.site = outer
        return self._inner(node.orelse, frame)

    @contextmanager
    def _repeated(self, node: ast.For | ast.AsyncFor | ast.While, frame: Frame) -> Iterator[None]:
        """A loop of which the passes are not known: what it counts is known in none of them."""
        names = {
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        forget = [name for name, old in frame.variables.items() if isinstance(old, Known)]
        with self.inside("loop", node):
            for name in names.intersection(forget):
                frame.variables[name] = OTHER
            yield
        for name in names:
            if isinstance(frame.variables.get(name), Known):
                frame.variables[name] = OTHER

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        """A local function; a decorator such as `pl.when(...)` runs it on the spot."""
        value: object = Callee(node, frame)
        for decorator in reversed(node.decorator_list):
            if not isinstance(value, Callee):
                break
            applied = self.decorate(decorator, value, frame)
            value = value if applied is None else applied
        frame.variables[node.name] = value

    def assign(
        self,
        target: ast.expr,
        value: object,
        frame: Frame,
        statement: ast.stmt,
        expr: ast.expr | None,
    ) -> None:
        match target:
            case ast.Name(id=name):
                self._owning(frame, name).variables[name] = value
                if isinstance(value, Ref) and not value.name:
                    value.name = name
            case ast.Subscript(value=base, slice=index):
                self.store("store", base, index, frame, statement, expr)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element, part in self._unpack(elements, value):
                    self.assign(element, part, frame, statement, None)
            case ast.Starred(value=inner):
                self.assign(inner, value, frame, statement, None)
            case ast.Attribute(value=base):
                self.eval(base, frame)
                self.escape(value, statement)

    def _owning(self, frame: Frame, name: str) -> Frame:
        """The frame in which an assignment sets a name: an outer one where it is `nonlocal`."""
        scope = self.names.scopes.get(frame.node)
        if scope is None or scope.outer.get(name) != "nonlocal":
            return frame
        found = self.names.lookup(name, scope)
        current: Frame | None = frame
        while current is not None and found is not None and current.node is not found[0].node:
            current = current.parent
        return current or frame

    @staticmethod
    def _unpack(elements: list[ast.expr], value: object) -> Iterator[tuple[ast.expr, object]]:
        items = value.items if isinstance(value, Items) else ()
        starred = [i for i, e in enumerate(elements) if isinstance(e, ast.Starred)]
        front = starred[0] if starred else len(elements)
        back = len(elements) - front - 1 if starred else 0
        is_open = isinstance(value, Items) and value.open_front
        for i, element in enumerate(elements):
            part: object = OTHER
            if not isinstance(value, Items):
                pass
            elif isinstance(element, ast.Starred):
                inner = items[front : len(items) - back] if not is_open else items[: -back or None]
                part = Items(tuple(inner), is_open)
            elif i > front or (is_open and not starred):
                offset = i - len(elements)
                part = items[offset] if -offset <= len(items) else OTHER
            elif not is_open and i < len(items):
                part = items[i]
            yield element, part

    def store(
        self,
        kind: str,
        base: ast.expr,
        index: ast.expr,
        frame: Frame,
        statement: ast.stmt,
        expr: ast.expr | None,
    ) -> None:
        held = self.eval(base, frame)
        self.eval(index, frame)
        if isinstance(held, Ref | View):
            ref = held if isinstance(held, Ref) else held.ref
            whole = is_whole(index, self.names) and (isinstance(held, Ref) or held.whole)
            self.emit(kind, statement, ref, how=held, index=index, value=expr, whole=whole)

    def update(
        self,
        target: ast.expr,
        frame: Frame,
        statement: ast.AugAssign,
        expr: ast.expr,
        value: object,
    ) -> None:
        if isinstance(target, ast.Subscript):
            self.store("update", target.value, target.slice, frame, statement, expr)
        elif isinstance(target, ast.Name):
            frame = self._owning(frame, target.id)
            old = frame.variables.get(target.id)
            result: object = OTHER
            if isinstance(old, Known) and isinstance(value, Known):
                result = self._combined(old, statement.op, value)
            frame.variables[target.id] = result

    def _combined(self, old: Known, op: ast.operator, value: Known) -> object:
        local = {"old": old.value, "value": value.value}
        together = ast.BinOp(ast.Name("old"), op, ast.Name("value"))
        result = self.constants.fold(together, local)
        return OTHER if result is UNKNOWN else Known(result)
