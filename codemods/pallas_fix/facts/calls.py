"""What calls do during the walk: Pallas and lax functions by name, functions of the file."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pallas_fix.facts.allocations import Allocation, Allocations, Slot, argument
from pallas_fix.facts.constants import UNKNOWN, Constants
from pallas_fix.facts.launches import KINDS, Launch
from pallas_fix.facts.names import Names
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
    Table,
    View,
)


@dataclass(frozen=True, slots=True)
class Runner:
    """What runs the function that it is given: `pl.when(test)`, `pl.loop(0, n)`."""

    run: Callable[[Callee], object]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The evaluated arguments of a call."""

    positional: tuple[object, ...]
    keywords: dict[str, object]

    def get(self, position: int | None, name: str) -> object:
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return OTHER


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`emit_pipeline(body, ...)`: calling it runs the body in a loop on windows of its refs."""

    run: Callable[[ast.Call, Arguments], object]


_SAME_FUNCTION = frozenset({"jax.jit", "jax.named_call", "jax.checkpoint", "functools.wraps"})
_REF_MAKERS = frozenset({"jax.empty_ref", "jax.new_ref", "pl.empty_ref_like", "jax.ref.empty_ref"})
_SHAPE_ONLY = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "shape", "ndim"})


class Calls(ABC):
    """The part of the walker that knows calls."""

    names: Names
    constants: Constants
    allocations: Allocations
    at: ast.AST | None

    @abstractmethod
    def eval(self, expr: ast.expr | None, frame: Frame | None) -> object: ...

    @abstractmethod
    def call(self, callee: Callee, args: Sequence[object], kwargs: dict[str, object]) -> object: ...

    @abstractmethod
    def emit(self, kind: str, node: ast.AST, ref: Ref | None, **more: object) -> Event: ...

    @abstractmethod
    def escape(self, value: object, node: ast.AST) -> None: ...

    @abstractmethod
    def scratch(self, slot: Slot, launch: Launch | None, kind: str = "scratch") -> object: ...

    @abstractmethod
    def inside(
        self, kind: str, node: ast.AST, test: GridTest | None = None
    ) -> AbstractContextManager[None]: ...

    def evaluate_call(self, expr: ast.Call, frame: Frame | None) -> object:
        """Evaluate a call, and write down what it does to refs."""
        name = self.names.qualified(expr.func)
        if name in KINDS:
            return OTHER
        if self.allocations.parse(expr) is not None:
            return self.allocations.slot(expr, expr)
        if name is not None:
            handler = _HANDLERS.get(name)
            if handler is not None:
                outer, self.at = self.at, expr
                result = handler(self, expr, frame)
                self.at = outer
                return result
            if name in _REF_MAKERS:
                return self._make_ref(expr, name)
        held = self.eval(expr.func, frame)
        given = self.arguments(expr, frame)
        if given is None:
            return OTHER
        outer, self.at = self.at, expr
        result = self._apply(expr, held, given, name)
        self.at = outer
        return result

    def _apply(self, expr: ast.Call, held: object, given: Arguments, name: str | None) -> object:
        match held:
            case Callee(runs="state"):
                refs = tuple(
                    self.scratch(a, None, "scoped") if isinstance(a, Slot) else a
                    for a in given.positional
                )
                return self.call(held, refs, given.keywords)
            case Callee():
                return self.call(held, given.positional, given.keywords)
            case Runner(run=run):
                target = given.get(0, "f")
                return run(target) if isinstance(target, Callee) else OTHER
            case Pipeline(run=run_pipeline):
                return run_pipeline(expr, given)
            case View(ref=ref):
                return View(ref, expr, whole=False)
        built_in = self._built_in(expr, given)
        if built_in is not None:
            return built_in
        if name in _SAME_FUNCTION and given.positional:
            return given.positional[0]
        last = (name or "").rpartition(".")[2]
        for value in (*given.positional, *given.keywords.values()):
            if last in _SHAPE_ONLY and isinstance(value, Ref):
                self.emit("meta", expr, value, how=value)
            else:
                self.escape(value, expr)
        return OTHER

    def arguments(self, expr: ast.Call, frame: Frame | None) -> Arguments | None:
        """Evaluate the arguments; None where a starred one hides refs from the walk."""
        positional: list[object] = []
        keywords: dict[str, object] = {}
        for item in expr.args:
            if isinstance(item, ast.Starred):
                inner = self.eval(item.value, frame)
                if isinstance(inner, Items) and (not inner.open_front or not positional):
                    if inner.open_front:
                        positional.append(inner)
                    else:
                        positional.extend(inner.items)
                else:
                    self.escape(inner, expr)
                    return None
            else:
                positional.append(self.eval(item, frame))
        for keyword in expr.keywords:
            value = self.eval(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Table):
                keywords.update({str(k): v for k, v in value.items.items()})
            else:
                self.escape(value, expr)
        return Arguments(tuple(positional), keywords)

    def decorate(self, decorator: ast.expr, value: Callee, frame: Frame | None) -> object:
        """Apply a decorator to a local function; None where it leaves it as it is."""
        held = self.eval(decorator, frame)
        self.at = value.node
        if isinstance(held, Runner):
            return held.run(value)
        if isinstance(held, Callee):
            return self.call(held, (value,), {})
        return None

    def _built_in(self, expr: ast.Call, given: Arguments) -> object:
        func = expr.func
        if not isinstance(func, ast.Name) or self.names.lookup(func.id, self.names.scope(func)):
            return None
        sequences = [v.items for v in given.positional if isinstance(v, Items) and not v.open_front]
        whole = len(sequences) == len(given.positional) > 0
        match func.id:
            case "range":
                numbers = [v.value for v in given.positional if isinstance(v, Known)]
                bounds = [n for n in numbers if isinstance(n, int)]
                if len(bounds) != len(given.positional) or not bounds or 0 in bounds[2:]:
                    return OTHER
                steps = range(*bounds)
                return Items(tuple(Known(i) for i in steps)) if len(steps) <= 4096 else OTHER
            case "enumerate" if whole:
                return Items(tuple(Items((Known(i), v)) for i, v in enumerate(sequences[0])))
            case "zip" if whole:
                return Items(tuple(Items(pair) for pair in zip(*sequences, strict=False)))
            case "reversed" if whole:
                return Items(tuple(reversed(sequences[0])))
            case "list" | "tuple" if len(given.positional) == 1:
                return given.positional[0] if isinstance(given.positional[0], Items) else OTHER
            case "len" if whole:
                return Known(len(sequences[0]))
            case "isinstance" | "print" | "id" | "type" | "hasattr":
                return OTHER
        return None

    def _make_ref(self, expr: ast.Call, name: str) -> object:
        given = expr.args[0] if expr.args else None
        where = argument(expr, None, "memory_space")
        space = self.allocations.space(where)
        allocation = self.allocations.parse(given) if given is not None else None
        if space is not None and where is not None:
            shape, dtype = self._shape_of(given)
            allocation = Allocation(expr, space[0], where, shape, dtype, space[1])
        return self.scratch(Slot(expr, expr, name, allocation), None, "empty")

    def _shape_of(self, expr: ast.expr | None) -> tuple[ast.expr | None, ast.expr | None]:
        """Shape and dtype of a `ShapeDtypeStruct`, `jnp.zeros` and so on, as expressions."""
        node = self.constants.origin(expr)
        if not isinstance(node, ast.Call):
            return None, None
        return argument(node, 0, "shape"), argument(node, 1, "dtype")

    def integer(self, expr: ast.expr | None, frame: Frame | None) -> object:
        """The constant that an argument is, UNKNOWN where it is not one, None where absent."""
        if expr is None:
            return None
        value = self.eval(expr, frame)
        if isinstance(value, Known):
            return value.value
        return UNKNOWN


def _push(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    for part in expr.args[:1]:
        walker.eval(part, frame)
    register = walker.integer(argument(expr, 1, "staging_register"), frame)
    mxu = walker.integer(argument(expr, 2, "mxu_index"), frame)
    walker.emit("push", expr, None, register=register, mxu=mxu, call=expr)
    return OTHER


def _acc(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc"), frame)
    lhs = argument(expr, 1, "lhs")
    walker.eval(lhs, frame)
    register = walker.integer(argument(expr, 2, "load_staged_rhs"), frame)
    walker.emit("acc", expr, _ref(held), how=held, value=lhs, register=register, call=expr)
    return OTHER


def _fifo(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    lhs = argument(expr, 0, "lhs")
    walker.eval(lhs, frame)
    mxu = walker.integer(argument(expr, 1, "mxu_index"), frame)
    register = walker.integer(argument(expr, None, "load_staged_rhs"), frame)
    walker.emit("fifo", expr, None, value=lhs, register=register, mxu=mxu, call=expr)
    return OTHER


def _pop(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc"), frame)
    walker.emit("pop", expr, _ref(held), how=held, call=expr)
    return OTHER


def _load(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "ref"), frame)
    ref = _ref(held)
    plain = isinstance(held, Ref) or (isinstance(held, View) and held.whole)
    whole = plain and len(expr.args) < 2
    if ref is not None:
        walker.emit("load", expr, ref, how=held, whole=whole, call=expr)
        return Loaded(ref, expr, whole)
    return OTHER


def _store(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "ref"), frame)
    value = argument(expr, 1, "val")
    walker.eval(value, frame)
    ref = _ref(held)
    if ref is not None:
        walker.emit("store", expr, ref, how=held, value=value, call=expr)
    return OTHER


def _wgmma(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc"), frame)
    for part in (*expr.args[1:], *(k.value for k in expr.keywords if k.arg != "acc")):
        walker.eval(part, frame)
    walker.emit("wgmma", expr, _ref(held), how=held, call=expr)
    return OTHER


def _wgmma_load(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc"), frame)
    ref = _ref(held)
    walker.emit("wgmma_load", expr, ref, how=held, call=expr)
    return Loaded(ref, expr, True) if ref is not None else OTHER


def _wgmma_store(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    held = walker.eval(argument(expr, 0, "acc_ref"), frame)
    value = argument(expr, 1, "val")
    walker.eval(value, frame)
    walker.emit("wgmma_store", expr, _ref(held), how=held, value=value, call=expr)
    return OTHER


def _ref(held: object) -> Ref | None:
    if isinstance(held, Ref):
        return held
    return held.ref if isinstance(held, View | Loaded) else None


def _when(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    test = walker.eval(argument(expr, 0, "condition"), frame)

    def run(callee: Callee) -> object:
        if isinstance(test, Known) and test.value is not UNKNOWN:
            return walker.call(callee, (), {}) if test.value else OTHER
        with walker.inside("branch", expr, test if isinstance(test, GridTest) else None):
            walker.call(callee, (), {})
        return OTHER

    return Runner(run)


def _pl_loop(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    walker.arguments(expr, frame)

    def run(callee: Callee) -> object:
        with walker.inside("loop", expr):
            walker.call(callee, (OTHER,), {})
        return OTHER

    return Runner(run)


def _fori(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    body, carry = (given.get(2, "body_fun"), given.get(3, "init_val")) if given else (OTHER, OTHER)
    return _looped(walker, expr, body, (OTHER, carry), carry)


def _scan(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    body, carry = (given.get(0, "f"), given.get(1, "init")) if given else (OTHER, OTHER)
    return _looped(walker, expr, body, (carry, OTHER), OTHER)


def _while(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    if given is None:
        return OTHER
    carry = given.get(2, "init_val")
    _looped(walker, expr, given.get(0, "cond_fun"), (carry,), carry)
    return _looped(walker, expr, given.get(1, "body_fun"), (carry,), carry)


def _looped(
    walker: Calls, expr: ast.Call, body: object, args: tuple[object, ...], carry: object
) -> object:
    if isinstance(body, Callee):
        with walker.inside("loop", expr):
            walker.call(body, args, {})
    else:
        walker.escape(carry, expr)
    return carry if isinstance(carry, Ref | Items) else OTHER


def _cond(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    if given is None:
        return OTHER
    branches = [given.get(1, "true_fun"), given.get(2, "false_fun")]
    for index, branch in enumerate(branches):
        test = given.get(0, "pred") if index == 0 else None
        _branch(walker, expr, branch, given.positional[3:], test)
    return OTHER


def _switch(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    given = walker.arguments(expr, frame)
    branches = given.get(1, "branches") if given else OTHER
    if given is not None and isinstance(branches, Items):
        for branch in branches.items:
            _branch(walker, expr, branch, given.positional[2:], None)
    return OTHER


def _branch(
    walker: Calls, expr: ast.Call, branch: object, args: Sequence[object], test: object
) -> None:
    if isinstance(branch, Callee):
        with walker.inside("branch", expr, test if isinstance(test, GridTest) else None):
            walker.call(branch, args, {})
    else:
        for value in args:
            walker.escape(value, expr)


def _types(
    walker: Calls, expr: ast.Call, first: int, frame: Frame | None
) -> tuple[tuple[object, ...], tuple[tuple[str, object], ...]]:
    """The refs that the types given to `run_scoped` or `with_scoped` stand for."""
    slots: list[Slot] = []
    for item in expr.args[first:]:
        if isinstance(item, ast.Starred):
            slots.extend(walker.allocations.slots(item.value) or ())
        else:
            slots.append(_slot(walker, item, expr, None, frame))
    keyed = [
        _slot(walker, k.value, expr, k.arg, frame)
        for k in expr.keywords
        if k.arg not in (None, "collective_axes", "f")
    ]
    positional = tuple(walker.scratch(s, None, "scoped") for s in slots)
    return positional, tuple((str(s.key), walker.scratch(s, None, "scoped")) for s in keyed)


def _slot(
    walker: Calls, item: ast.expr, call: ast.Call, key: str | None, frame: Frame | None
) -> Slot:
    slot = walker.allocations.slot(item, call, key)
    if slot.allocation is None and slot.children is None:
        held = walker.eval(item, frame)
        if isinstance(held, Slot):
            slot.allocation = held.allocation
    return slot


def _run_scoped(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    body = walker.eval(argument(expr, 0, "f"), frame)
    positional, keyed = _types(walker, expr, 1, frame)
    return walker.call(body, positional, dict(keyed)) if isinstance(body, Callee) else OTHER


def _with_scoped(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    positional, keyed = _types(walker, expr, 0, frame)

    def run(callee: Callee) -> object:
        return Callee(
            callee.node,
            callee.frame,
            callee.args,
            callee.kwargs,
            (*callee.scoped, *positional),
            (*callee.scoped_kwargs, *keyed),
        )

    return Runner(run)


def _run_state(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    body = walker.eval(argument(expr, 0, "f"), frame)
    if isinstance(body, Callee):
        return Callee(body.node, body.frame, body.args, body.kwargs, runs="state")
    return OTHER


def _partial(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    name = walker.names.qualified(expr.args[0]) if expr.args else None
    if name == "pl.run_scoped":
        positional, keyed = _types(walker, expr, 1, frame)
        return Runner(lambda callee: walker.call(callee, positional, dict(keyed)))
    if name == "lax.fori_loop":
        return Runner(lambda callee: _looped(walker, expr, callee, (OTHER, OTHER), OTHER))
    if name in KINDS or not expr.args:
        return OTHER
    inner = walker.eval(expr.args[0], frame)
    rest = ast.Call(expr.func, expr.args[1:], expr.keywords)
    given = walker.arguments(rest, frame)
    if not isinstance(inner, Callee) or given is None:
        for value in (*given.positional, *given.keywords.values()) if given else ():
            walker.escape(value, expr)
        return OTHER
    return Callee(
        inner.node,
        inner.frame,
        (*inner.args, *given.positional),
        (*inner.kwargs, *given.keywords.items()),
        inner.scoped,
        inner.scoped_kwargs,
        inner.runs,
    )


def _pipeline(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    body = walker.eval(argument(expr, 0, "body"), frame)
    if not isinstance(body, Callee):
        return OTHER

    def run(call: ast.Call, given: Arguments) -> object:
        extra = given.keywords.get("scratches")
        tail = extra.items if isinstance(extra, Items) else ()
        arguments = body.node.args
        count = len(arguments.posonlyargs) + len(arguments.args) - len(body.args) - len(tail)
        with walker.inside("loop", call):
            walker.call(body, (*[OTHER] * max(0, count), *tail), {})
        return OTHER

    return Pipeline(run)


def _program(walker: Calls, expr: ast.Call, frame: Frame | None) -> object:
    axis = walker.integer(argument(expr, 0, "axis"), frame)
    count = walker.names.qualified(expr.func) == "pl.num_programs"
    return Program(axis, count) if isinstance(axis, int) else OTHER


_HANDLERS: dict[str, Callable[[Calls, ast.Call, Frame | None], object]] = {
    "pltpu.matmul_push_rhs": _push,
    "pltpu.matmul_acc_lhs": _acc,
    "pltpu.matmul_pop": _pop,
    "pltpu.matmul_lhs_fifo": _fifo,
    "pltpu.load": _load,
    "plgpu.load": _load,
    "pl.load": _load,
    "pltpu.store": _store,
    "plgpu.wgmma": _wgmma,
    "plgpu.wgmma_accumulator_load": _wgmma_load,
    "plgpu.wgmma_accumulator_store": _wgmma_store,
    "pl.when": _when,
    "pl.loop": _pl_loop,
    "plgpu.nd_loop": _pl_loop,
    "pltpu.run_scoped": _run_scoped,
    "pl.run_scoped": _run_scoped,
    "pl.with_scoped": _with_scoped,
    "pl.run_state": _run_state,
    "functools.partial": _partial,
    "lax.fori_loop": _fori,
    "lax.scan": _scan,
    "lax.while_loop": _while,
    "lax.cond": _cond,
    "lax.switch": _switch,
    "pltpu.emit_pipeline": _pipeline,
    "plgpu.emit_pipeline": _pipeline,
    "plgpu.emit_pipeline_warp_specialized": _pipeline,
    "pl.program_id": _program,
    "pl.num_programs": _program,
}
