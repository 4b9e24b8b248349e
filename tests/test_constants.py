"""Constants fold where their value is certain, and only there."""

import ast

import pytest

from pallas_fix.facts import Facts
from pallas_fix.facts.constants import UNKNOWN, Constants, DType

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


def returned(text: str) -> tuple[Facts, ast.expr | None]:
    module = Facts.parse(f"{PRELUDE}{text}", "k.py")
    found = [node for node in ast.walk(module.tree) if isinstance(node, ast.Return)]
    return module, found[-1].value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("def f(x, y=3, *, z=M): return y + z", 67),
        ("def f(x, y=3):\n    y = 4\n    return y", UNKNOWN),
        ("def f(x=1, /, y=(2, 3)):\n    n = y[1] * 2\n    return (x, n)", (1, 6)),
        ("def f(M=M): return M", 64),
        ("def f(*args, **kw): return args", UNKNOWN),
        ("def f(x): return x", UNKNOWN),
    ],
)
def test_a_parameter_may_be_worth_its_default(text: str, value: object) -> None:
    module, expr = returned(text)
    assert Constants(module.names, defaults=True).fold(expr) == value
    assert module.constants.fold(expr) is UNKNOWN


def test_known_names_hold_only_where_they_are_visible() -> None:
    module, expr = returned("def f(M, n):\n    own = M + n\n    return TILE[0] + M + own")
    assert module.constants.fold(expr, {"M": 3, "n": 1}) == 16 + 3 + 4
