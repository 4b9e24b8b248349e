"""What an expression is worth before the program runs: ints, strings, tuples, dtypes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pallas_fix.dtypes import DTYPES
from pallas_fix.facts.names import Names
from pallas_fix.facts.scopes import Scope, defaults


@dataclass(frozen=True, slots=True)
class DType:
    """A dtype by its numpy name: `float32`, `bfloat16`, `float8_e4m3fn`."""

    name: str


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()

Value = int | float | bool | str | None | tuple["Value", ...] | DType | _Unknown

_DTYPES = frozenset(DTYPES.values())
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LIMIT = 1 << 48


class Constants:
    """Folds expressions of one module.

    A name is worth its value where it is bound once in its scope, by an assignment. A
    parameter is not a constant: its callers may pass anything. With `defaults`, it is worth
    its default: what holds where callers pass nothing.
    """

    def __init__(self, names: Names, *, defaults: bool = False) -> None:
        self._names = names
        self._defaults = defaults
        self._folded: dict[ast.expr, Value] = {}

    def fold(self, expr: ast.expr | None, local: dict[str, Value] | None = None) -> Value:
        """The value of an expression, or UNKNOWN. `local` gives names that are known anyway."""
        return self._fold(expr, local or {}, 0)

    def shape(self, expr: ast.expr | None) -> tuple[int | None, ...] | None:
        """A shape with None for each unknown dimension; None where even the rank is unknown."""
        expr = self.origin(expr)
        if isinstance(expr, ast.Tuple | ast.List):
            if any(isinstance(e, ast.Starred) for e in expr.elts):
                return None
            return tuple(_dimension(self.fold(e)) for e in expr.elts)
        value = self.fold(expr)
        if isinstance(value, tuple):
            return tuple(_dimension(v) for v in value)
        return (value,) if isinstance(value, int) and not isinstance(value, bool) else None

    def dtype(self, expr: ast.expr | None) -> str | None:
        """The numpy name of a dtype expression, or None."""
        value = self.fold(expr)
        if isinstance(value, DType):
            return value.name
        return value if isinstance(value, str) and value in _DTYPES else None

    def origin(self, expr: ast.expr | None) -> ast.expr | None:
        """Follow names to the expression that they were assigned, where that is certain."""
        for _ in range(8):
            if not isinstance(expr, ast.Name):
                break
            bound = self._bound(expr)
            if bound is None:
                break
            expr = bound
        return expr

    def _bound(self, name: ast.Name) -> ast.expr | None:
        """The expression that a name is certain to stand for."""
        binding = self._names.binding(name, self._names.scope(name))
        if binding is None:
            return None
        if self._defaults and binding.kind == "param" and isinstance(binding.node, ast.arg):
            arguments = self._names.parent[binding.node]
            known = defaults(arguments) if isinstance(arguments, ast.arguments) else {}
            return known.get(binding.node)
        return binding.value if binding.kind == "assign" else None

    def _visible(self, local: dict[str, Value], here: Scope, there: Scope) -> dict[str, Value]:
        """The names of `local` that stand for the same in the scope of what a name is bound to."""
        if here is there:
            return local
        lookup = self._names.lookup
        return {n: value for n, value in local.items() if lookup(n, here) == lookup(n, there)}

    def _fold_once(self, expr: ast.expr, local: dict[str, Value], depth: int) -> Value:
        """Fold what a name is bound to, once: chains such as `b = a + a` would double each time."""
        if local:
            return self._fold(expr, local, depth)
        if expr not in self._folded:
            self._folded[expr] = UNKNOWN
            self._folded[expr] = self._fold(expr, local, depth)
        return self._folded[expr]

    def _fold(self, expr: ast.expr | None, local: dict[str, Value], depth: int) -> Value:
        if depth > 24:
            return UNKNOWN
        deeper = depth + 1
        match expr:
            case ast.Constant(value=int() | float() | str() | None as value):
                return value
            case ast.Name(id=name) if name in local:
                return local[name]
            case ast.Name() | ast.Attribute():
                return self._name(expr, local, deeper)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                values = tuple(self._fold(e, local, deeper) for e in elements)
                return UNKNOWN if any(v is UNKNOWN for v in values) else values
            case ast.UnaryOp(op=op, operand=operand):
                inner = self._fold(operand, local, deeper)
                if isinstance(op, ast.USub) and isinstance(inner, int | float):
                    return -inner
                return not inner if isinstance(op, ast.Not) and inner is not UNKNOWN else UNKNOWN
            case ast.BinOp():
                return self._binary(expr, local, deeper)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self._fold(left, local, deeper), self._fold(right, local, deeper)
                compare = _COMPARE.get(type(op))
                if isinstance(a, int) and isinstance(b, int) and compare:
                    return compare(a, b)
                if isinstance(op, ast.Is | ast.IsNot) and a is not UNKNOWN and b is None:
                    return (a is None) == isinstance(op, ast.Is)
                return UNKNOWN
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = self._fold(test, local, deeper)
                if chosen is UNKNOWN:
                    return UNKNOWN
                return self._fold(body if chosen else orelse, local, deeper)
            case ast.Subscript(value=value_expr, slice=index):
                whole = self._fold(value_expr, local, deeper)
                position = self._fold(index, local, deeper)
                if isinstance(whole, tuple) and isinstance(position, int):
                    return whole[position] if -len(whole) <= position < len(whole) else UNKNOWN
                return UNKNOWN
            case ast.Call(func=func, args=arguments, keywords=[]):
                return self._call(func, arguments, local, deeper)
            case _:
                return UNKNOWN

    def _name(self, expr: ast.Name | ast.Attribute, local: dict[str, Value], depth: int) -> Value:
        if isinstance(expr, ast.Name):
            bound = self._bound(expr)
            if bound is not None:
                here, there = self._names.scope(expr), self._names.scope(bound)
                return self._fold_once(bound, self._visible(local, here, there), depth)
        qualified = self._names.qualified(expr)
        if qualified is None:
            return UNKNOWN
        module, _, name = qualified.rpartition(".")
        if module in ("jnp", "np", "ml_dtypes", "jax.dtypes") and name.rstrip("_") in _DTYPES:
            return DType(name.rstrip("_"))
        return UNKNOWN

    def _binary(self, expr: ast.BinOp, local: dict[str, Value], depth: int) -> Value:
        left, right = self._fold(expr.left, local, depth), self._fold(expr.right, local, depth)
        operation = _BINARY.get(type(expr.op))
        if isinstance(left, int) and isinstance(right, int) and operation is not None:
            try:
                result = operation(left, right)
            except (ZeroDivisionError, ValueError, OverflowError, MemoryError):
                return UNKNOWN
            return result if abs(result) < _LIMIT else UNKNOWN
        if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(expr.op, ast.Add):
            return left + right
        if isinstance(left, tuple) and isinstance(right, int) and isinstance(expr.op, ast.Mult):
            return left * right if len(left) * right < 64 else UNKNOWN
        return UNKNOWN

    def _call(
        self, func: ast.expr, arguments: list[ast.expr], local: dict[str, Value], depth: int
    ) -> Value:
        name = self._names.qualified(func)
        values = [self._fold(a, local, depth) for a in arguments]
        if name == "pl.cdiv" and len(values) == 2:
            a, b = values
            if isinstance(a, int) and isinstance(b, int) and b:
                return -(-a // b)
        if name in ("jnp.dtype", "np.dtype") and len(values) == 1:
            if isinstance(values[0], str) and values[0] in _DTYPES:
                return DType(values[0])
            return values[0] if isinstance(values[0], DType) else UNKNOWN
        if isinstance(func, ast.Name) and self._names.lookup(func.id, self._names.scope(func)):
            return UNKNOWN
        if isinstance(func, ast.Name) and func.id == "len" and len(values) == 1:
            return len(values[0]) if isinstance(values[0], tuple) else UNKNOWN
        if isinstance(func, ast.Name) and func.id in ("min", "max") and len(values) > 1:
            numbers = [v for v in values if isinstance(v, int)]
            if len(numbers) == len(values):
                return min(numbers) if func.id == "min" else max(numbers)
        if isinstance(func, ast.Name) and func.id == "tuple" and len(values) == 1:
            return values[0] if isinstance(values[0], tuple) else UNKNOWN
        return UNKNOWN


def _dimension(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
