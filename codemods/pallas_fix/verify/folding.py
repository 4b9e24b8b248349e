"""Values of expressions that follow from the text alone: numbers, shapes, dtypes, arrays.

Folding knows less than Python and never guesses: what is bound twice, comes from a parameter
without a default, or goes through anything unknown has no value.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pallas_fix.verify.arguments import DTYPES, Array, Key, Values

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype, by its name in jaxprs."""

    short: str


Folded: TypeAlias = "int | float | str | bool | tuple[Folded, ...] | Dtype | Array | Key | None"


class Unknown(Exception):
    """The expression has no value that the text alone gives."""


class Scope:
    """The names of a module, or of one function in it, and what they are bound to."""

    def __init__(self, node: ast.Module | Function, outer: Scope | None = None) -> None:
        self.outer = outer
        self.imports: dict[str, str] = {}
        self.values: dict[str, ast.expr] = {}
        self.names: Counter[str] = Counter()
        body = [node.body] if isinstance(node, ast.Lambda) else node.body
        if not isinstance(node, ast.Module):
            self._parameters(node.args)
        for child in own_nodes(body):
            self._bind(child)

    def _parameters(self, args: ast.arguments) -> None:
        names = [arg.arg for arg in args.posonlyargs + args.args]
        defaults = dict(zip(reversed(names), reversed(args.defaults), strict=False))
        keywords = zip(args.kwonlyargs, args.kw_defaults, strict=True)
        self.values |= defaults | {arg.arg: value for arg, value in keywords if value}
        self.names.update(names + [arg.arg for arg in args.kwonlyargs])
        self.names.update(arg.arg for arg in (args.vararg, args.kwarg) if arg)

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self.imports[name] = alias.name if alias.asname else name
            case ast.ImportFrom(module=str(module), level=0):
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = f"{module}.{alias.name}"
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self.names[name] += 1
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.names[name] += 1
            case ast.ClassDef(name=name):
                self.names[name] += 1
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self.names.update(dict.fromkeys(names, 2))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.values[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=False):
                self._assign(one, its)

    def path(self, node: ast.expr) -> str:
        """The dotted path of what a name or attribute stands for. Raises Unknown."""
        if isinstance(node, ast.Attribute):
            return f"{self.path(node.value)}.{node.attr}"
        if not isinstance(node, ast.Name):
            raise Unknown
        if node.id in self.imports and not self.names[node.id]:
            return self.imports[node.id]
        if self.names[node.id] == 1 and node.id in self.values:
            return self.path(self.values[node.id])
        if self.names[node.id] or self.outer is None:
            raise Unknown
        return self.outer.path(node)

    def lookup(self, name: str) -> tuple[ast.expr, Scope]:
        """The one expression that a name is bound to, and the scope of it. Raises Unknown."""
        if self.names[name] == 1 and name in self.values:
            return self.values[name], self
        if self.names[name] or name in self.imports or self.outer is None:
            raise Unknown
        return self.outer.lookup(name)


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of a body without those inside nested functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            yield from own_nodes(ast.iter_child_nodes(node))


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_DEPTH = 40
"""How far names are followed; more is a circle."""


def fold(node: ast.expr, scope: Scope, depth: int = 0) -> Folded:
    """The value of an expression in a scope. Raises Unknown."""
    if depth > _DEPTH:
        raise Unknown
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return tuple(fold(item, scope, depth + 1) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = fold(operand, scope, depth + 1)
            if isinstance(number, int | float):
                return -number
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, fold(left, scope, depth + 1), fold(right, scope, depth + 1))
        case ast.Name(id=name):
            try:
                value_node, where = scope.lookup(name)
            except Unknown:
                return _dtype_at(scope.path(node))
            return fold(value_node, where, depth + 1)
        case ast.Attribute():
            return _dtype_at(scope.path(node))
        case ast.Call():
            return _call(node, scope, depth + 1)
    raise Unknown


def _binary(op: ast.operator, left: Folded, right: Folded) -> Folded:
    if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(op, ast.Add):
        return left + right
    function = _OPERATORS.get(type(op))
    if function is None or not isinstance(left, int) or not isinstance(right, int):
        raise Unknown
    try:
        return function(left, right)
    except ArithmeticError:
        raise Unknown from None


_SHORT = {name: short for short, name in DTYPES.items()} | {"bool_": "bool"}


def _dtype_at(path: str) -> Dtype:
    module, _, name = path.rpartition(".")
    if module in ("jax.numpy", "numpy", "ml_dtypes") and name in _SHORT:
        return Dtype(_SHORT[name])
    raise Unknown


def as_dtype(value: Folded) -> Dtype:
    """A folded value as a dtype: itself, or a name such as 'bfloat16'. Raises Unknown."""
    if isinstance(value, str) and value in _SHORT:
        return Dtype(_SHORT[value])
    if isinstance(value, Dtype):
        return value
    raise Unknown


def as_shape(value: Folded) -> tuple[int, ...]:
    """A folded value as a shape: whole numbers from 0 on. Raises Unknown."""
    if isinstance(value, int):
        value = (value,)
    if not isinstance(value, tuple):
        raise Unknown
    sizes = [size for size in value if isinstance(size, int) and size >= 0]
    if len(sizes) != len(value):
        raise Unknown
    return tuple(sizes)


_MAKERS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "jax.ShapeDtypeStruct": (("shape", "dtype"), None),
    "jax.numpy.zeros": (("shape", "dtype"), "f32"),
    "jax.numpy.ones": (("shape", "dtype"), "f32"),
    "jax.numpy.empty": (("shape", "dtype"), "f32"),
    "jax.numpy.full": (("shape", "fill_value", "dtype"), None),
    "numpy.zeros": (("shape", "dtype"), None),
    "numpy.ones": (("shape", "dtype"), None),
    "numpy.empty": (("shape", "dtype"), None),
    "numpy.full": (("shape", "fill_value", "dtype"), None),
    "jax.random.normal": (("key", "shape", "dtype"), "f32"),
    "jax.random.uniform": (("key", "shape", "dtype", "minval", "maxval"), "f32"),
    "jax.random.randint": (("key", "shape", "minval", "maxval", "dtype"), "i32"),
}
"""Functions that make arrays: their parameters in order, and the dtype where none is given."""


def _call(node: ast.Call, scope: Scope, depth: int) -> Folded:
    if any(keyword.arg is None for keyword in node.keywords):
        raise Unknown
    if isinstance(node.func, ast.Attribute) and node.func.attr == "astype" and len(node.args) == 1:
        array = fold(node.func.value, scope, depth)
        if isinstance(array, Array):
            return Array(as_dtype(fold(node.args[0], scope, depth)).short, array.shape)
        raise Unknown
    path = scope.path(node.func)
    if path in ("jax.random.key", "jax.random.PRNGKey") and len(node.args) == 1:
        return Key("fry", ()) if path == "jax.random.key" else Array("u32", (2,))
    if path in ("jax.numpy.dtype", "numpy.dtype") and len(node.args) == 1:
        return as_dtype(fold(node.args[0], scope, depth))
    if path not in _MAKERS:
        raise Unknown
    names, default = _MAKERS[path]
    given = dict(zip(names, node.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    dtype = as_dtype(fold(given["dtype"], scope, depth)).short if "dtype" in given else default
    if "shape" not in given or dtype is None:
        raise Unknown
    shape = as_shape(fold(given["shape"], scope, depth))
    values = None
    if path == "jax.random.randint":
        low, high = (fold(given[name], scope, depth) for name in ("minval", "maxval"))
        if not isinstance(low, int) or not isinstance(high, int) or low >= high:
            raise Unknown
        values = Values("range", low, high)
    return Array(dtype, shape, values)
