"""Indices that select everything, and values that are zero."""

from __future__ import annotations

import ast

from pallas_fix.facts.names import Names

_ZEROS = frozenset({"jnp.zeros", "jnp.zeros_like", "np.zeros", "lax.zeros_like_array"})
_FULL = frozenset({"jnp.full", "jnp.full_like", "lax.full", "lax.full_like", "lax.broadcast"})


def is_whole(index: ast.expr, names: Names) -> bool:
    """True for an index of the whole ref: `...`, `()`, `:`, `slice(None)`, tuples of these."""
    match index:
        case ast.Constant(value=value):
            return value is Ellipsis
        case ast.Slice(lower=lower, upper=upper, step=step):
            return lower is None and upper is None and step is None
        case ast.Tuple(elts=elements):
            return all(is_whole(e, names) for e in elements)
        case ast.Call(func=ast.Name(id="slice"), args=[ast.Constant(value=None)], keywords=[]):
            return names.lookup("slice", names.scope(index)) is None
        case _:
            return False


def is_zero(value: ast.expr | None, names: Names) -> bool:
    """True for an expression that is zero everywhere: `0`, `jnp.zeros(...)`, `zeros_like`."""
    match value:
        case ast.Constant(value=int() | float() as number):
            return not isinstance(number, bool) and number == 0
        case ast.Call(func=ast.Attribute(value=inner, attr="astype")):
            return is_zero(inner, names)
        case ast.Call(func=func, args=arguments):
            name = names.qualified(func)
            if name in _ZEROS:
                return True
            fill = {k.arg: k.value for k in value.keywords}.get("fill_value")
            if name in _FULL:
                position = 0 if name == "lax.broadcast" else 1
                fill = arguments[position] if len(arguments) > position else fill
                return is_zero(fill, names)
            scalar = name in ("jnp.float32", "jnp.asarray", "jnp.array") and len(arguments) == 1
            return scalar and is_zero(arguments[0], names)
        case _:
            return False
