"""Infers shapes and dtypes of expressions in kernels; what is not certain stays unknown."""

from __future__ import annotations

import ast

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Ref
from pallas_fix.rules.wgmma.accumulators import Accumulators
from pallas_fix.rules.wgmma.dimensions import NOTHING, Known
from pallas_fix.rules.wgmma.operations import Operations
from pallas_fix.rules.wgmma.reaching import Assigned, Parameter, Updated
from pallas_fix.rules.wgmma.typed import (
    UNKNOWN,
    Typed,
    elementwise,
    join,
    python_number,
)

_DEPTH = 48
_STEPS = 4000


class Shapes(Operations):
    """The types of the expressions of one module."""

    def __init__(self, module: Facts, accumulators: Accumulators) -> None:
        super().__init__(module.names, module.constants)
        self._accumulators = accumulators
        self._found: dict[ast.expr, Typed] = {}
        self._depth = 0
        self._steps = 0

    def of(self, expr: ast.expr | None, known: Known = NOTHING) -> Typed:
        """The type of an expression; `known` holds types of parameters around it."""
        if expr is None:
            return UNKNOWN
        if not known and expr in self._found:
            return self._found[expr]
        self._steps = self._steps + 1 if self._depth else 0
        if self._depth > _DEPTH or self._steps > _STEPS:
            return UNKNOWN
        self._depth += 1
        try:
            result = self._of(expr, known)
        finally:
            self._depth -= 1
        # What a limit cut off may still be found from nearer by.
        if not known and (self._depth == 0 or result != UNKNOWN):
            self._found[expr] = result
        return result

    def ref(self, ref: Ref) -> Typed:
        """The type of what a ref holds, with a symbol for each dimension that is not known."""
        allocation = ref.allocation
        unknown = Typed((f"@{id(ref)}.0", f"@{id(ref)}.1"), f"@{id(ref)}")
        if allocation is None:
            return unknown if self._accumulators.is_accumulator(ref) else UNKNOWN
        if allocation.init is not None:
            return self.of(allocation.init)
        shape, dtype = self.shape(allocation.shape), self.dtype(allocation.dtype)
        if allocation.space != "plgpu.ACC":
            return Typed(shape, dtype)
        if allocation.dtype is None:
            dtype = "float32"
        return Typed(shape or unknown.shape, dtype or unknown.dtype)

    def modelled(self, ref: Ref, value: ast.expr) -> bool:
        """True for a ref that is allocated with `value.shape` and `value.dtype`."""
        symbol, allocation = self.symbol(value), ref.allocation
        shape = allocation.shape if allocation is not None else None
        dtype = allocation.dtype if allocation is not None else None
        return (
            isinstance(shape, ast.Attribute)
            and isinstance(dtype, ast.Attribute)
            and (shape.attr, dtype.attr) == ("shape", "dtype")
            and symbol is not None
            and self.symbol(shape.value) == self.symbol(dtype.value) == symbol
        )

    def refs(self, refs: list[Ref], base: ast.expr) -> Typed:
        """The type of what the refs that `base` may stand for hold."""
        types = [self.ref(ref) for ref in refs]
        if len(set(types)) == 1:
            return types[0]
        key = self.symbol(base)
        if key is None or not all(self._accumulators.is_accumulator(ref) for ref in refs):
            return join(types)
        dtypes = {t.dtype for t in types}
        dtype = dtypes.pop() if len(dtypes) == 1 else f"@{key}"
        return Typed((f"@{key}.0", f"@{key}.1"), dtype)

    def model(self, call: ast.Call, known: Known) -> Typed:
        """The type of the first argument of `zeros_like` and its kin, be it a ref or an array."""
        given = call.args[0] if call.args else None
        refs = self._accumulators.refs(call)
        return self.refs(refs, given) if refs and given is not None else self.of(given, known)

    def _of(self, expr: ast.expr, known: Known) -> Typed:
        match expr:
            case ast.Constant(value=bool() | int() | float() as value):
                return python_number(type(value).__name__)
            case ast.Name():
                return self._name(expr, known)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
                return self.of(operand, known)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(self.of(left, known), op, self.of(right, known))
            case ast.Compare(left=left, comparators=[right]):
                result = elementwise(self.of(left, known), self.of(right, known))
                return Typed(result.shape, "bool")
            case ast.IfExp(body=body, orelse=orelse):
                return join([self.of(body, known), self.of(orelse, known)])
            case ast.NamedExpr(value=value):
                return self.of(value, known)
            case ast.Attribute(value=base, attr="T"):
                return self.transposed(self.of(base, known))
            case ast.Attribute():
                return self._folded(expr)
            case ast.Subscript(value=base, slice=index):
                return self._subscript(expr, base, index, known)
            case ast.Call():
                return self._call(expr, known)
            case _:
                return UNKNOWN

    def _folded(self, expr: ast.expr) -> Typed:
        value = self._constants.fold(expr)
        if isinstance(value, bool | int | float):
            return python_number(type(value).__name__)
        return UNKNOWN

    def _binary(self, left: Typed, op: ast.operator, right: Typed) -> Typed:
        if isinstance(op, ast.MatMult):
            return UNKNOWN
        return elementwise(left, right, divides=isinstance(op, ast.Div))

    def _name(self, expr: ast.Name, known: Known) -> Typed:
        match self._reaching.of(expr):
            case Assigned(value=value):
                return self.of(value, known)
            case Updated(statement=statement):
                return self._updated(statement, known)
            case Parameter() as parameter:
                return self._parameter(parameter, known)
        return UNKNOWN

    def _updated(self, statement: ast.AugAssign, known: Known) -> Typed:
        assert isinstance(statement.target, ast.Name)
        name = statement.target.id
        before = self._reaching.before(name, statement, self._names.scope(statement))
        left = UNKNOWN
        match before:
            case Assigned(value=value):
                left = self.of(value, known)
            case Parameter() as parameter:
                left = self._parameter(parameter, known)
        return self._binary(left, statement.op, self.of(statement.value, known))

    def _parameter(self, parameter: Parameter, known: Known) -> Typed:
        """What is passed for a parameter, where all calls of the function say the same."""
        found = known.get((parameter.function, parameter.name))
        if found is not None:
            return found
        function = parameter.function
        if isinstance(function, ast.Lambda) or function.decorator_list or self._passed_on(function):
            return self._carried(parameter)
        types = [
            self.of(passed(call, function, parameter.name))
            for call in self._names.callers.get(function, ())
        ]
        return join(types)

    def _passed_on(self, function: Function) -> bool:
        """True where a function is used other than by calling it: then others may call it too."""
        scope = self._names.scope(function)
        name = getattr(function, "name", "")
        for node in ast.walk(scope.node):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                around = self._names.parent[node]
                called = isinstance(around, ast.Call) and around.func is node
                if not called and self._names.definition(node) is function:
                    return True
        return False

    def _carried(self, parameter: Parameter) -> Typed:
        """The carry of a `fori_loop`, which keeps the type of its initial value."""
        arguments = parameter.function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        if len(names) != 2 or names[1] != parameter.name:
            return UNKNOWN
        types = [
            self.of(argument(call, 3, "init_val"))
            for call in self._names.calls
            if self._names.qualified(call.func) == "lax.fori_loop"
            and self._body(call) is parameter.function
        ]
        return join([t if not t.weak else UNKNOWN for t in types])

    def _body(self, call: ast.Call) -> Function | None:
        body = argument(call, 2, "body_fun")
        return None if body is None else self._names.definition(body)

    def _subscript(
        self, expr: ast.Subscript, base: ast.expr, index: ast.expr, known: Known
    ) -> Typed:
        if expr in self._accumulators.events:
            held = self.refs(self._accumulators.refs(expr), base)
            how = [e.how for e in self._accumulators.events[expr]]
            if not all(isinstance(h, Ref) for h in how):
                return Typed(None, held.dtype)
        else:
            held = self.of(base, known)
        if self.covers(index, held.shape):
            return held
        return Typed(self.indexed(held.shape, index), held.dtype)

    def _call(self, expr: ast.Call, known: Known) -> Typed:
        loads = self._accumulators.events.get(expr, ())
        if any(e.kind in ("wgmma_load", "load") for e in loads) and expr.args:
            held = self.refs(self._accumulators.refs(expr), expr.args[0])
            return held if all(e.whole for e in loads) else Typed(None, held.dtype)
        if isinstance(expr.func, ast.Attribute):
            found = self.method(expr, expr.func, known)
            if found is not None:
                return found
        name = self._names.qualified(expr.func)
        if name == "lax.fori_loop":
            carry = self.of(argument(expr, 3, "init_val"), known)
            return UNKNOWN if carry.weak else carry
        if name is not None and name.partition(".")[0] in ("jnp", "lax", "jax", "plgpu", "math"):
            return self.function(expr, name, known)
        return self._own(expr, known)

    def _own(self, expr: ast.Call, known: Known) -> Typed:
        """A call of a function of the file that ends in its one `return`."""
        function = self._names.definition(expr.func)
        if function is None or any(isinstance(a, ast.Starred) for a in expr.args):
            return UNKNOWN
        if isinstance(function, ast.Lambda):
            result: ast.expr | None = function.body
        else:
            returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
            last = function.body[-1]
            if function.decorator_list or returns != [last] or not isinstance(last, ast.Return):
                return UNKNOWN
            result = last.value
        arguments = function.args
        inner = dict(known)
        named = [*arguments.posonlyargs, *arguments.args]
        missing: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
        defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
        for parameter, default in zip([*named, *arguments.kwonlyargs], defaults, strict=True):
            given = passed(expr, function, parameter.arg)
            if given is not None:
                inner[function, parameter.arg] = self.of(given, known)
            elif default is not None:
                inner[function, parameter.arg] = self.of(default)
        return self.of(result, inner)

    def held(self, expr: ast.Attribute, base: ast.expr, known: Known) -> Typed:
        """The type of `base` in `base.shape`, be it a ref or an array."""
        refs = self._accumulators.refs(expr)
        if refs:
            direct = all(e.how is e.ref for e in self._accumulators.events[expr])
            return self.refs(refs, base) if direct else UNKNOWN
        inner = base.value if isinstance(base, ast.Attribute) else None
        if inner is not None and isinstance(base, ast.Attribute) and base.attr == "inner_aval":
            return self.refs(self._accumulators.refs(base), inner)
        named = self._accumulators.named(base)
        return self.refs(named, base) if named else self.of(base, known)


def passed(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """The argument that a call gives a parameter by position or keyword."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return argument(call, names.index(name) if name in names else None, name)
