"""What calls do during the walk: known functions by name, functions of the file, unknown code."""

from __future__ import annotations

import ast

from pallas_fix.facts.allocations import Allocation, Slot, argument
from pallas_fix.facts.control import CONTROL
from pallas_fix.facts.launches import KINDS
from pallas_fix.facts.primitives import PRIMITIVES
from pallas_fix.facts.values import OTHER, Callee, Frame, Items, Known, Ref, Table, View
from pallas_fix.facts.walk import Arguments, Pipeline, Runner, Walk

HANDLERS = {**PRIMITIVES, **CONTROL}
_SAME_FUNCTION = frozenset({"jax.jit", "jax.named_call", "jax.checkpoint", "functools.wraps"})
_REF_MAKERS = frozenset(
    {"jax.empty_ref", "jax.ref.empty_ref", "jax.new_ref", "jax.ref.new_ref", "pl.empty_ref_like"}
)
_SHAPE_ONLY = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "shape", "ndim"})


class Calls(Walk):
    """The part of the walker that evaluates calls."""

    def evaluate_call(self, expr: ast.Call, frame: Frame | None) -> object:
        """Evaluate a call, and write down what it does to refs."""
        name = self.names.qualified(expr.func)
        if name in KINDS:
            return OTHER
        if self.allocations.parse(expr) is not None:
            return self.allocations.slot(expr, expr)
        if name is not None:
            handler = HANDLERS.get(name)
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
        """Evaluate the arguments; None where a starred one hides refs from the walk.

        Keywords that are not known are noted as `**`.
        """
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
                positional.append(self._argument(item, frame))
        for keyword in expr.keywords:
            value = self._argument(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Table):
                keywords.update({str(k): v for k, v in value.items.items()})
            else:
                self.escape(value, expr)
                keywords["**"] = OTHER
        return Arguments(tuple(positional), keywords)

    def _argument(self, expr: ast.expr, frame: Frame | None) -> object:
        """The value of an argument; a number of the kernel that is not known keeps its name."""
        value = self.eval(expr, frame)
        return (self.number(expr, value) or value) if value is OTHER else value

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
        where = argument(expr, 1 if name.endswith("empty_ref") else None, "memory_space")
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
