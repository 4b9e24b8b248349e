"""The dtype in which `pl.dot` summed: int32 for integers, else float32.

jax 0.11.1, jax/_src/pallas/primitives.py; float64 needs x64, which no kernel for a chip has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from pallas_fix.facts import Facts

_INTEGER = re.compile(r"u?int(?:2|4|8|16|32|64)")
_SMALL = re.compile(r"u?int(?:2|4|8|16)")
_FLOATS = re.compile(r"(?:jnp|lax|jax\.nn|np)\.(?:exp|exp2|log|tanh|sqrt|rsqrt|softmax|sigmoid)")
_FILLED = {"jnp.zeros": 1, "jnp.ones": 1, "jnp.full": 2}
_DEPTH = 8


def summed(module: Facts, arguments: Mapping[str, ast.expr]) -> str | None:
    """The dtype of a product, or None where that is not known.

    Where the file speaks of no small integers, floats are multiplied: no chip multiplies others.
    """
    found = [_dtype(module, arguments.get(name)) for name in ("a", "b")]
    if any(dtype is not None and not _INTEGER.fullmatch(dtype) for dtype in found):
        return "float32"
    if None not in found:
        return "int32"
    return None if _speaks_of_integers(module) else "float32"


def _speaks_of_integers(module: Facts) -> bool:
    """True where the file names a small integer dtype, in code and not in its texts."""
    if not _SMALL.search(module.text):
        return False
    for node in ast.walk(module.tree):
        word = getattr(node, "attr", getattr(node, "id", getattr(node, "value", None)))
        if isinstance(word, str) and _SMALL.fullmatch(word):
            return True
        if isinstance(node, ast.alias) and _SMALL.fullmatch(node.name.rpartition(".")[2]):
            return True
    return False


def _dtype(module: Facts, value: ast.expr | None, depth: int = _DEPTH) -> str | None:
    """A dtype of an expression: its name, or some float where it is one. None: not known."""
    origin = module.constants.origin(value)
    if origin is None or not depth:
        return None
    match origin:
        case ast.Constant(value=float()):
            return "float32"
        case ast.Call(func=ast.Attribute(attr="astype"), args=[dtype]):
            return module.constants.dtype(dtype)
        case ast.Attribute(value=inner, attr="T"):
            return _dtype(module, inner, depth - 1)
        case ast.UnaryOp(operand=inner):
            return _dtype(module, inner, depth - 1)
        case ast.BinOp(op=ast.Div()):
            return "float32"
        case ast.BinOp(left=left, right=right):
            sides = [_dtype(module, side, depth - 1) for side in (left, right)]
            floats = [one for one in sides if one is not None and not _INTEGER.fullmatch(one)]
            return floats[0] if floats else None
        case ast.Call(func=func, args=arguments, keywords=keywords):
            name = module.names.qualified(func) or ""
            if _FLOATS.fullmatch(name):
                return "float32"
            if name in _FILLED:
                given = [k.value for k in keywords if k.arg == "dtype"]
                given += arguments[_FILLED[name] : _FILLED[name] + 1]
                return module.constants.dtype(given[0]) if given else "float32"
    return None
