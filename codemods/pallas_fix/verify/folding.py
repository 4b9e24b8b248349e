"""Expressions of a file as arguments of a case: literals, and the arrays that calls make.

Never guesses: what `facts.constants` cannot tell has no value here either.
"""

from __future__ import annotations

import ast

from pallas_fix.dtypes import DTYPES
from pallas_fix.facts import constants
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.names import Names
from pallas_fix.verify.arguments import Array, Group, Key, Literal, Value, Values

_SHORT = {name: short for short, name in DTYPES.items()}
_DEPTH = 24
"""How far names are followed; more is a circle."""
_MAKERS: dict[str | None, tuple[int, int, str | None]] = {
    "jax.ShapeDtypeStruct": (0, 1, None),
    "jnp.zeros": (0, 1, "f32"),
    "jnp.ones": (0, 1, "f32"),
    "jnp.empty": (0, 1, "f32"),
    "jnp.full": (0, 2, None),
    "np.zeros": (0, 1, None),
    "np.ones": (0, 1, None),
    "np.empty": (0, 1, None),
    "np.full": (0, 2, None),
    "jax.random.normal": (1, 2, "f32"),
    "jax.random.uniform": (1, 2, "f32"),
    "jax.random.randint": (1, 4, "i32"),
}
"""Functions that make arrays: where `shape` and `dtype` stand, and the dtype if none is given."""


class Unknown(Exception):
    """The expression has no value that the text alone gives."""


class Folding:
    """Reads arguments off the expressions of one module; a parameter is worth its default."""

    def __init__(self, names: Names) -> None:
        self.constants = constants.Constants(names, defaults=True)
        self._names = names

    def argument(self, expr: ast.expr, depth: int = 0) -> Value:
        """What an expression hands to a function. Raises Unknown."""
        if depth > _DEPTH:
            raise Unknown
        folded = self.constants.fold(expr)
        if folded is not constants.UNKNOWN:
            return _constant(folded)
        match self.constants.origin(expr):
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return Group("(", tuple(self.argument(item, depth + 1) for item in items))
            case ast.Call() as call:
                return self._made(call, depth + 1)
        raise Unknown

    def shape(self, expr: ast.expr | None) -> tuple[int, ...]:
        """A shape that is known in all dimensions. Raises Unknown."""
        shape = self.constants.shape(expr)
        if shape is None:
            raise Unknown
        sizes = tuple(size for size in shape if size is not None and size >= 0)
        if len(sizes) != len(shape):
            raise Unknown
        return sizes

    def dtype(self, expr: ast.expr | None) -> str:
        """A dtype by its name in jaxprs. Raises Unknown."""
        name = self.constants.dtype(expr)
        if name is None:
            raise Unknown
        return _SHORT[name]

    def _made(self, call: ast.Call, depth: int) -> Array | Key:
        starred = any(isinstance(given, ast.Starred) for given in call.args)
        if starred or any(keyword.arg is None for keyword in call.keywords):
            raise Unknown
        uncast, cast = without_cast(call)
        if cast is not None:
            array = self.argument(uncast, depth)
            if isinstance(array, Array):
                return Array(self.dtype(cast), array.shape)
            raise Unknown
        name = self._names.qualified(call.func)
        if name in ("jax.random.key", "jax.random.PRNGKey") and len(call.args) == 1:
            return Key("fry", ()) if name == "jax.random.key" else Array("u32", (2,))
        if name not in _MAKERS:
            raise Unknown
        shape_at, dtype_at, dtype = _MAKERS[name]
        given = argument(call, dtype_at, "dtype")
        dtype = dtype if given is None else self.dtype(given)
        if dtype is None:
            raise Unknown
        shape = self.shape(argument(call, shape_at, "shape"))
        return Array(dtype, shape, self._range(call) if name == "jax.random.randint" else None)

    def _range(self, call: ast.Call) -> Values:
        low = self.constants.fold(argument(call, 2, "minval"))
        high = self.constants.fold(argument(call, 3, "maxval"))
        if not isinstance(low, int) or not isinstance(high, int) or low >= high:
            raise Unknown
        return Values("range", low, high)


def without_cast(expr: ast.expr) -> tuple[ast.expr, ast.expr | None]:
    """`x` and the dtype of `x.astype(dtype)`; any other expression as it is, and None."""
    match expr:
        case ast.Call(func=ast.Attribute(value=array, attr="astype"), args=[dtype], keywords=[]):
            return array, dtype
    return expr, None


def _constant(value: constants.Value) -> Value:
    if isinstance(value, tuple):
        return Group("(", tuple(map(_constant, value)))
    if value is None or isinstance(value, int | float | str):
        return Literal(value)
    raise Unknown
