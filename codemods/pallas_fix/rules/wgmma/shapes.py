"""Infers shapes and dtypes of expressions in kernels; what is not certain stays unknown."""

from __future__ import annotations

import ast

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.indexing import is_whole
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Ref
from pallas_fix.rules.wgmma.accumulators import Accumulators
from pallas_fix.rules.wgmma.operations import Known, Operations
from pallas_fix.rules.wgmma.reaching import Assigned, Parameter, Reaching, Updated
from pallas_fix.rules.wgmma.typed import (
    UNKNOWN,
    Dim,
    Shape,
    Typed,
    elementwise,
    join,
    other_shape,
    python_number,
)

_DEPTH = 24
_WINDOWS = ("pl.ds", "pl.dslice")
_NOTHING: Known = {}


class Shapes(Operations):
    """The types of the expressions of one module."""

    def __init__(self, module: Facts, accumulators: Accumulators) -> None:
        self._module = module
        self._names = module.names
        self._constants = module.constants
        self._accumulators = accumulators
        self._reaching = Reaching(module.names)
        self._depth = 0

    def of(self, expr: ast.expr | None, known: Known = _NOTHING) -> Typed:
        """The type of an expression; `known` holds types of parameters around it."""
        if expr is None or self._depth > _DEPTH:
            return UNKNOWN
        self._depth += 1
        try:
            return self._of(expr, known)
        finally:
            self._depth -= 1

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
        symbol, allocation = self._symbol(value), ref.allocation
        shape = allocation.shape if allocation is not None else None
        dtype = allocation.dtype if allocation is not None else None
        return (
            isinstance(shape, ast.Attribute)
            and isinstance(dtype, ast.Attribute)
            and (shape.attr, dtype.attr) == ("shape", "dtype")
            and symbol is not None
            and self._symbol(shape.value) == self._symbol(dtype.value) == symbol
        )

    def refs(self, refs: list[Ref], base: ast.expr) -> Typed:
        """The type of what the refs that `base` may stand for hold."""
        types = [self.ref(ref) for ref in refs]
        if len(set(types)) == 1:
            return types[0]
        key = self._symbol(base)
        if key is None or not all(self._accumulators.is_accumulator(ref) for ref in refs):
            return join(types)
        dtypes = {t.dtype for t in types}
        dtype = dtypes.pop() if len(dtypes) == 1 else f"@{key}"
        return Typed((f"@{key}.0", f"@{key}.1"), dtype)

    def operand(self, expr: ast.expr) -> Shape | None:
        """The shape of an operand of `wgmma`: a ref, a view of one, or an array."""
        kinds = ("wgmma_operand", "escape")
        refs = [e.ref for e in self._accumulators.events.get(expr, ()) if e.kind in kinds]
        known = [ref for ref in refs if ref is not None]
        return self._view(expr, list(dict.fromkeys(known))) if known else self.of(expr).shape

    def _view(self, expr: ast.expr, refs: list[Ref]) -> Shape | None:
        """The shape of a view of refs, by the transforms that the expression applies."""
        order: list[ast.expr] = []
        match expr:
            case ast.Name():
                return self.refs(refs, expr).shape
            case ast.Subscript(value=ast.Attribute(value=base, attr="at"), slice=index):
                held = self._view(base, refs)
                return held if self.covers(index, held) else self.indexed(held, index)
            case ast.Attribute(value=base, attr="T"):
                pass
            case ast.Call(func=ast.Attribute(value=base, attr="transpose"), args=order):
                pass
            case ast.Call(func=func, args=[base, *order]):
                if self._names.qualified(func) != "plgpu.transpose_ref":
                    return None
            case _:
                return None
        held = self._view(base, refs)
        if held is None or len(held) != 2 or not order:
            return None if held is None else held[::-1]
        return self.permuted(Typed(held), order).shape

    def shape(self, expr: ast.expr | None, known: Known = _NOTHING) -> Shape | None:
        """The shape that an expression such as `(M, N)` or `acc.shape` stands for."""
        match expr:
            case None:
                return None
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                found: list[Dim] = []
                for element in elements:
                    if isinstance(element, ast.Starred):
                        inner = self.shape(element.value, known)
                        if inner is None:
                            return None
                        found.extend(inner)
                    else:
                        found.append(self.dim(element, known))
                return tuple(found)
            case ast.Attribute(value=base, attr="shape"):
                return self._held(expr, base, known).shape
            case ast.Name():
                definition = self._reaching.of(expr)
                if isinstance(definition, Assigned) and not isinstance(definition.value, ast.Name):
                    return self.shape(definition.value, known)
            case ast.Call(func=func, args=[inner]) if self._names.qualified(func) == "jnp.shape":
                return self.of(inner, known).shape
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self.shape(left, known), self.shape(right, known)
                return None if first is None or second is None else first + second
        folded = self._constants.shape(expr)
        return folded if folded is None else tuple(folded)

    def dim(self, expr: ast.expr, known: Known = _NOTHING) -> Dim:
        """One dimension: a number, or a symbol for an expression that always means the same."""
        value = self._constants.fold(expr)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(expr, ast.Subscript):
            at = self._constants.fold(expr.slice)
            shape = self.shape(expr.value, known)
            if shape is not None and isinstance(at, int) and -len(shape) <= at < len(shape):
                return shape[at]
        if isinstance(expr, ast.Name):
            definition = self._reaching.of(expr)
            if isinstance(definition, Assigned):
                return self.dim(definition.value, known)
        return self._symbol(expr)

    def dtype(self, expr: ast.expr | None, known: Known = _NOTHING) -> str | None:
        """The dtype that an expression such as `jnp.float32` or `x.dtype` stands for."""
        if expr is None:
            return None
        found = self._constants.dtype(expr)
        if found is not None:
            return found
        if isinstance(expr, ast.Attribute) and expr.attr == "dtype":
            return self._held(expr, expr.value, known).dtype
        if isinstance(expr, ast.Name):
            definition = self._reaching.of(expr)
            if isinstance(definition, Assigned):
                return self.dtype(definition.value, known)
        symbol = self._symbol(expr)
        return None if symbol is None else f"@{symbol}"

    def model(self, call: ast.Call, known: Known = _NOTHING) -> Typed:
        """The type of the first argument of `zeros_like` and its kin, be it a ref or an array."""
        given = call.args[0] if call.args else None
        refs = self._accumulators.refs(call)
        return self.refs(refs, given) if refs and given is not None else self.of(given, known)

    def number(self, expr: ast.expr | None) -> object:
        """The constant that an expression is, or the marker for what is not one."""
        return self._constants.fold(expr)

    def qualified(self, expr: ast.expr) -> str | None:
        """The canonical name of an expression."""
        return self._names.qualified(expr)

    def covers(self, index: ast.expr, shape: Shape | None) -> bool:
        """True for an index that certainly selects all of an array of this shape."""
        if is_whole(index, self._names):
            return True
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if shape is None or len(parts) > len(shape):
            return False
        return all(
            is_whole(part, self._names) or self._whole_slice(part, dim)
            for part, dim in zip(parts, shape, strict=False)
        )

    def trivial(self, index: ast.expr, shape: Shape | None) -> bool:
        """True for an index with which jax lets a whole accumulator be stored.

        `...`, or a tuple with a full slice for each of its entries (`is_trivial_index` in
        jax/_src/pallas/mosaic_gpu/core.py).
        """
        if isinstance(index, ast.Tuple):
            return not any(isinstance(p, ast.Constant) for p in index.elts) and self.covers(
                index, shape
            )
        return isinstance(index, ast.Constant) and index.value is Ellipsis

    def partial(self, index: ast.expr, shape: Shape | None) -> bool:
        """True for an index that jax certainly refuses for a store."""
        if not isinstance(index, ast.Tuple):
            window = isinstance(index, ast.Call) and self._names.qualified(index.func) in _WINDOWS
            number = isinstance(self._constants.fold(index), int)
            return isinstance(index, ast.Slice) or window or number
        if any(isinstance(part, ast.Constant) for part in index.elts):
            return True
        lengths = self.indexed(shape, index)
        return other_shape(lengths, shape)

    def _whole_slice(self, index: ast.expr, dim: Dim) -> bool:
        match index:
            case ast.Slice(lower=lower, upper=upper, step=None):
                starts = lower is None or self.dim(lower) == 0
                return starts and (upper is None or (dim is not None and self.dim(upper) == dim))
            case ast.Call(args=[start, length], keywords=[]):
                if self._names.qualified(index.func) in _WINDOWS:
                    return self.dim(start) == 0 and dim is not None and self.dim(length) == dim
        return False

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
        folded = self._folded(expr)
        if folded != UNKNOWN:
            return folded
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
            return self.refs(self._accumulators.refs(expr), expr.args[0])
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
        for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            given = passed(expr, function, parameter.arg)
            if given is not None:
                inner[function, parameter.arg] = self.of(given, known)
        return self.of(result, inner)

    def _held(self, expr: ast.Attribute, base: ast.expr, known: Known) -> Typed:
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

    def _symbol(self, expr: ast.expr) -> str | None:
        """A text that is the same for expressions that always have the same value."""
        scopes: list[str] = []
        for node in ast.walk(expr):
            match node:
                case ast.Name(id=name):
                    found = self._names.lookup(name, self._names.scope(node))
                    kinds = [b.kind for b in found[1]] if found is not None else []
                    if found is None or kinds not in (["param"], ["assign"], ["import"]):
                        return None
                    scopes.append(str(id(found[0])))
                case ast.Attribute() | ast.Constant() | ast.BinOp() | ast.operator():
                    pass
                case ast.Subscript() | ast.expr_context() | ast.UnaryOp() | ast.unaryop():
                    pass
                case _:
                    return None
        return f"{'.'.join(scopes)}:{ast.unparse(expr)}"


def passed(call: ast.Call, function: Function, name: str) -> ast.expr | None:
    """The argument that a call gives a parameter by position or keyword."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return argument(call, names.index(name) if name in names else None, name)
