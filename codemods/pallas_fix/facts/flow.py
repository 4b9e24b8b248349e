"""A symbolic walk through kernels: where each ref goes, and in which order.

Calls of functions of the file are followed, loops over known Python ranges are unrolled, and
what runs only under a condition or in a traced loop is kept in a region of its own. Nothing of
jax is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.facts.allocations import Allocations, Slot
from pallas_fix.facts.calls import Calls
from pallas_fix.facts.constants import UNKNOWN, Constants, Value
from pallas_fix.facts.indexing import is_whole
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function, Names
from pallas_fix.facts.values import (
    OTHER,
    Callee,
    Event,
    Frame,
    GridTest,
    Items,
    Known,
    Loaded,
    Program,
    Ref,
    Region,
    Table,
    Trace,
    View,
)

_DEPTH = 24
_UNROLL = 16
_EVENTS = 20_000
_META = frozenset({"shape", "dtype", "ndim", "size", "aval", "inner_aval", "memory_space"})
_RUNNERS = {"when": "branch", "loop": "loop"}


class TooLarge(Exception):
    """The walk met more events than it may hold."""


class Walker(Calls):
    """Walks kernels of one module."""

    def __init__(self, names: Names, constants: Constants, allocations: Allocations) -> None:
        self.names = names
        self.constants = constants
        self.allocations = allocations
        self.entered: set[ast.AST] = set()
        self.refs: list[Ref] = []
        self.region = Region("body", names.tree)
        self.functions: tuple[Function, ...] = ()
        self.site: tuple[int, ...] = ()
        self.at: ast.AST | None = None
        self._events = 0
        self._frames: dict[Function, Frame] = {}

    def launch(self, launch: Launch) -> Trace | None:
        """Walk the kernel of a launch, or None where the kernel is not in this file."""
        self._begin(launch.call)
        frame = self._outer(launch.call)
        self._begin(launch.call)
        if isinstance(launch.kernel, ast.FunctionDef):
            callee = self._defined(launch.kernel, frame)
        else:
            callee = self.eval(launch.kernel, frame) if launch.kernel is not None else OTHER
        if not isinstance(callee, Callee):
            return None
        scratch = tuple(self.scratch(slot, launch) for slot in launch.scratch or ())
        keyed = [(s.key, r) for s, r in zip(launch.scratch or (), scratch, strict=True) if s.key]
        positional = () if keyed else scratch
        arguments = self._operands(callee, launch, len(positional), {str(k) for k, _ in keyed})
        root = self.region
        self.call(callee, (*arguments, *positional), {str(k): r for k, r in keyed})
        parameters = tuple(_positional(callee, {str(k) for k, _ in keyed}))
        return Trace(root, callee.node, launch, self.refs, parameters)

    def function(self, node: Function) -> Trace:
        """Walk a function that nothing in the file runs; its parameters are refs of any kind."""
        self._begin(node)
        root = self.region
        arguments = [Ref("param", a, name=a.arg) for a in (*node.args.posonlyargs, *node.args.args)]
        self.refs.extend(arguments)
        self.call(Callee(node, None), tuple(arguments), {})
        return Trace(root, node, None, self.refs)

    def scratch(self, slot: Slot, launch: Launch | None, kind: str = "scratch") -> object:
        """The ref, or the tree of refs, that a slot stands for."""
        if slot.children is not None:
            inner = tuple(self.scratch(child, launch, kind) for child in slot.children)
            if any(child.key for child in slot.children):
                return Table({c.key: r for c, r in zip(slot.children, inner, strict=True)})
            return Items(inner)
        ref = Ref(kind, slot.element, slot.allocation, slot, launch)
        self.refs.append(ref)
        return ref

    def _begin(self, node: ast.AST) -> None:
        self.refs = []
        self.region = Region("body", node)
        self.functions = ()
        self.site = ()
        self.at = None
        self._events = 0

    def _outer(self, node: ast.AST) -> Frame | None:
        """A frame for the function around a node, so that its local functions are found."""
        function = next(self.names.enclosing(node), None)
        if function is None:
            return None
        if function not in self._frames:
            frame = Frame(function, None)
            self._frames[function] = frame
            frame.parent = self._outer(function)
            callers = self.names.callers.get(function, [])
            if len(callers) == 1:
                with _Inside(self, Region("unknown", function)):
                    given = self.arguments(callers[0], self._outer(callers[0]))
                if given is not None:
                    self._bind(function, given.positional, given.keywords, frame)
        return self._frames[function]

    def _operands(
        self, callee: Callee, launch: Launch, scratch: int, keyed: set[str]
    ) -> tuple[object, ...]:
        arguments = callee.node.args
        names = _positional(callee, keyed)
        names = names[: len(names) - len(callee.scoped)] if callee.scoped else names
        outputs = launch.outputs or 0
        if arguments.vararg is not None:
            fixed = [self._operand(launch, name, None) for name in names]
            tail = [self._operand(launch, "", i) for i in range(outputs)]
            return (*fixed, Items(tuple(tail), open_front=True))
        count = max(0, len(names) - scratch)
        known = launch.outputs is not None and launch.kind != "core_map"
        first = count - outputs
        return tuple(
            self._operand(launch, name, i - first if known and i >= first else None)
            for i, name in enumerate(names[:count])
        )

    def _operand(self, launch: Launch, name: str, output: int | None) -> Ref:
        ref = Ref("operand", launch.call, launch=launch, name=name, output=output)
        self.refs.append(ref)
        return ref

    def emit(self, kind: str, node: ast.AST, ref: Ref | None, **more: object) -> Event:
        """Write an event down."""
        self._events += 1
        if self._events > _EVENTS:
            raise TooLarge
        event = Event(kind, node, ref, functions=self.functions, site=self.site)
        for key, value in more.items():
            setattr(event, key, value)
        self.region.items.append(event)
        return event

    def inside(self, kind: str, node: ast.AST, test: GridTest | None = None) -> _Inside:
        """A context in which events go to a new region."""
        return _Inside(self, Region(kind, node, test=test))

    def call(self, callee: Callee, args: Sequence[object], kwargs: dict[str, object]) -> object:
        """Run a function of the file with these arguments."""
        node = callee.node
        if len(self.functions) > _DEPTH or self.functions.count(node) > 1:
            return OTHER
        self.entered.add(node)
        frame = Frame(node, callee.frame)
        values = (*callee.args, *args, *callee.scoped)
        keywords = {**dict(callee.kwargs), **kwargs, **dict(callee.scoped_kwargs)}
        self._bind(node, values, keywords, frame)
        outer, self.functions = self.functions, (*self.functions, node)
        region = Region("body", node, at=self.at)
        try:
            with _Inside(self, region):
                if isinstance(node, ast.Lambda):
                    return self.eval(node.body, frame)
                return self.block(node.body, frame)
        finally:
            self.functions = outer

    def _bind(
        self,
        node: Function,
        values: Sequence[object],
        keywords: dict[str, object],
        frame: Frame,
    ) -> None:
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args]
        rest = list(values)
        for parameter in named:
            if parameter.arg in keywords:
                frame.variables[parameter.arg] = self._named(keywords[parameter.arg], parameter)
            elif rest and not (isinstance(rest[0], Items) and rest[0].open_front):
                frame.variables[parameter.arg] = self._named(rest.pop(0), parameter)
        for parameter in arguments.kwonlyargs:
            if parameter.arg in keywords:
                frame.variables[parameter.arg] = self._named(keywords[parameter.arg], parameter)
        defaults = [None] * (len(named) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = (*zip(named, defaults, strict=True),)
        pairs += (*zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),)
        for parameter, default in pairs:
            if parameter.arg not in frame.variables and default is not None:
                frame.variables[parameter.arg] = self.eval(default, frame.parent)
        if arguments.vararg is not None:
            front = bool(rest) and isinstance(rest[0], Items) and rest[0].open_front
            head = rest[0].items if front and isinstance(rest[0], Items) else rest[:1]
            frame.variables[arguments.vararg.arg] = Items((*head, *rest[1:]), front)
        if arguments.kwarg is not None:
            known = {p.arg for p in (*named, *arguments.kwonlyargs)}
            spare: dict[object, object] = {k: v for k, v in keywords.items() if k not in known}
            frame.variables[arguments.kwarg.arg] = Table(spare)

    @staticmethod
    def _named(value: object, parameter: ast.arg) -> object:
        if isinstance(value, Ref) and not value.name:
            value.name = parameter.arg
        return value

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
                self.eval(value, frame)
                self.update(target, frame, node, value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.define(node, frame)
            case ast.If(test=test):
                return self.conditional(node, self.eval(test, frame), frame)
            case ast.For() | ast.AsyncFor():
                return self.loop(node, frame)
            case ast.While(test=test, body=body):
                self.eval(test, frame)
                with self.inside("loop", node):
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
        if passes is None or len(passes) > _UNROLL:
            with self.inside("loop", node):
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
                frame.variables[name] = value
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

    def update(self, target: ast.expr, frame: Frame, statement: ast.stmt, expr: ast.expr) -> None:
        if isinstance(target, ast.Subscript):
            self.store("update", target.value, target.slice, frame, statement, expr)
        elif isinstance(target, ast.Name):
            frame.variables[target.id] = OTHER

    def eval(self, expr: ast.expr | None, frame: Frame | None) -> object:
        """The value of an expression; what it does to refs is written down on the way."""
        match expr:
            case None:
                return OTHER
            case ast.Constant():
                return Known(self.constants.fold(expr))
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
        known = isinstance(over, Items) and not over.open_front and len(over.items) <= _UNROLL
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
            return _constant(value)
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
            return Callee(definition, None, (OTHER,) if method else ())
        value = self.constants.fold(expr)
        if value is not UNKNOWN:
            return _constant(value)
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
            picked = _pick(held, position)
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
        parts = [self.eval(c, frame) for c in ast.iter_child_nodes(expr) if isinstance(c, ast.expr)]
        if all(isinstance(p, Known) for p in parts):
            local = self._locals(expr, frame)
            value = self.constants.fold(expr, local)
            return Known(value) if value is not UNKNOWN else OTHER
        if isinstance(expr, ast.BinOp):
            return _arithmetic(expr, parts)
        if isinstance(expr, ast.Compare) and len(parts) == 2 and isinstance(expr.ops[0], ast.Eq):
            return _grid_test(parts[0], parts[1])
        for part in parts:
            if isinstance(part, Ref):
                self.emit("meta", expr, part, how=part)
        return OTHER

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


class _Inside:
    """Directs events into a region while it is active."""

    def __init__(self, walker: Walker, region: Region) -> None:
        self._walker = walker
        self._region = region
        self._outer = walker.region

    def __enter__(self) -> None:
        self._outer = self._walker.region
        self._outer.items.append(self._region)
        self._walker.region = self._region

    def __exit__(self, *exc: object) -> None:
        self._walker.region = self._outer


def _positional(callee: Callee, keyed: set[str]) -> list[str]:
    """The parameters that are still to be bound by position."""
    arguments = callee.node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][len(callee.args) :]
    bound = {name for name, _ in callee.kwargs} | keyed
    return [name for name in names if name not in bound]


def _constant(value: Value) -> object:
    if isinstance(value, tuple):
        return Items(tuple(_constant(v) for v in value))
    return Known(value)


def _pick(held: Items | Table, position: object) -> object:
    if not isinstance(position, Known):
        return OTHER
    if isinstance(held, Table):
        return held.items.get(position.value, OTHER)
    index = position.value
    if not isinstance(index, int) or (held.open_front and index >= 0):
        return OTHER
    return held.items[index] if -len(held.items) <= index < len(held.items) else OTHER


def _arithmetic(expr: ast.BinOp, parts: list[object]) -> object:
    match parts:
        case [Items(items=left, open_front=front), Items(items=right, open_front=False)]:
            return Items(left + right, front) if isinstance(expr.op, ast.Add) else OTHER
        case [Items(items=items, open_front=False), Known(value=int(count))]:
            repeat = isinstance(expr.op, ast.Mult) and 0 <= count <= _UNROLL
            return Items(items * count) if repeat else OTHER
        case [Program(axis=axis, count=is_count, offset=offset), Known(value=int(number))]:
            if isinstance(expr.op, ast.Add | ast.Sub):
                step = number if isinstance(expr.op, ast.Add) else -number
                return Program(axis, is_count, offset + step)
    return OTHER


def _grid_test(left: object, right: object) -> object:
    if not isinstance(left, Program):
        left, right = right, left
    if not isinstance(left, Program) or left.count or left.offset:
        return OTHER
    if isinstance(right, Known) and right.value == 0:
        return GridTest(left.axis, "first")
    last = isinstance(right, Program) and right.count and right.offset == -1
    if last and isinstance(right, Program) and right.axis == left.axis:
        return GridTest(left.axis, "last")
    return GridTest(left.axis, "other")
