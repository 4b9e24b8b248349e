"""Constants fold where their value is certain, and only there."""

import ast

import pytest

from pallas_fix.facts import Facts
from pallas_fix.facts.constants import UNKNOWN, DType

PRELUDE = """
import jax.numpy as jnp
from jax.experimental import pallas as pl
M, N = 64, 256
TILE = (M // 8 * 2, N)
TWICE = 1
TWICE = 2
"""


def fold(expr: str) -> object:
    module = Facts.parse(f"{PRELUDE}def f(x, y=3):\n    n = 4\n    return {expr}\n", "k.py")
    function = module.tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return)
    return module.constants.fold(returned.value)


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        ("M", 64),
        ("TILE", (16, 256)),
        ("TILE[0] + n", 20),
        ("(M, N)[-1]", 256),
        ("pl.cdiv(M + 1, 8)", 9),
        ("len(TILE)", 2),
        ("max(M, N)", 256),
        ("-n", -4),
        ("M if n == 4 else N", 64),
        ("jnp.bfloat16", DType("bfloat16")),
        ("jnp.dtype('float32')", DType("float32")),
        ("not 0", True),
        ("(M,) * 2", (64, 64)),
        ("TWICE", UNKNOWN),
        ("x", UNKNOWN),
        ("y", UNKNOWN),
        ("M // 0", UNKNOWN),
        ("1 << 1 << 4000", UNKNOWN),
        ("jnp.float32x", UNKNOWN),
        ("M / 2", UNKNOWN),
        ("undefined", UNKNOWN),
    ],
)
def test_fold(expr: str, value: object) -> None:
    assert fold(expr) == value


def test_shapes_keep_what_is_known() -> None:
    module = Facts.parse(f"{PRELUDE}def f(x):\n    return (x, N)\n", "k.py")
    function = module.tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    returned = function.body[-1]
    assert isinstance(returned, ast.Return)
    assert module.constants.shape(returned.value) == (None, 256)


def test_chains_that_double_are_folded_once_each() -> None:
    chain = "".join(f"x{i + 1} = x{i} + x{i} + x{i}\n" for i in range(200))
    module = Facts.parse(f"x0 = 1\n{chain}near, far = x4, x199\n", "k.py")
    last = module.tree.body[-1]
    assert isinstance(last, ast.Assign)
    assert isinstance(last.value, ast.Tuple)
    near, far = last.value.elts
    assert (module.constants.fold(near), module.constants.fold(far)) == (81, UNKNOWN)
