"""What is inferred of shapes and dtypes is what jax makes of the same expression."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from pallas_fix.facts import Facts
from pallas_fix.rules.wgmma.accumulators import Accumulators
from pallas_fix.rules.wgmma.paths import Paths
from pallas_fix.rules.wgmma.reaching import Assigned, Parameter, Reaching, Updated
from pallas_fix.rules.wgmma.shapes import Shapes
from pallas_fix.rules.wgmma.stores import Traffic
from pallas_fix.rules.wgmma.typed import Typed

ARRAYS = """
import math
import jax
from jax import lax
import jax.numpy as jnp

M, N = 64, 128
SCALE = 0.5

def relu(a, floor=0):
    return jnp.maximum(a, floor)
"""
HEAD = f"from jax.experimental.pallas import mosaic_gpu as plgpu\n{ARRAYS}"


def inferred(expression: str, dtype: str = "float32") -> Typed:
    """The type of an expression in `x` (64 by 128), `h` (float16), `row` (64) and `i` (int32)."""
    text = f"""{HEAD}
def run():
    x = jnp.zeros((M, N), jnp.{dtype})
    h = jnp.zeros((M, N), jnp.float16)
    row = jnp.zeros((M,), jnp.float32)
    i = jnp.zeros((M, N), jnp.int32)
    result = {expression}
"""
    module = Facts.parse(text, "m.py")
    [value] = [
        node.value
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "result"
    ]
    return Shapes(module, Accumulators(module)).of(value)


def actual(expression: str, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    space: dict[str, Any] = {}
    exec(ARRAYS, space)
    code = f"lambda x, h, row, i: jnp.asarray({expression})"
    array: Any = jax.ShapeDtypeStruct
    result: jax.ShapeDtypeStruct = jax.eval_shape(
        eval(code, space),
        array((64, 128), jnp.dtype(dtype)),
        array((64, 128), jnp.float16),
        array((64,), jnp.float32),
        array((64, 128), jnp.int32),
    )
    return result


KNOWN = [
    "x",
    "-x * 2 + SCALE",
    "x / 2",
    "i / 2",
    "i * 2",
    "i * SCALE",
    "h * SCALE",
    "h + x",
    "h + i",
    "x > 0",
    "x.T",
    "x.transpose()",
    "x.transpose(1, 0)",
    "jnp.swapaxes(x, 0, 1)",
    "jnp.transpose(x, (0, 1))",
    "x.reshape(N, M)",
    "x.reshape(-1, 2)",
    "jnp.reshape(x, (32, -1))",
    "x.ravel()",
    "jnp.broadcast_to(x, (2, M, N))",
    "lax.broadcast_in_dim(row, (M, N), (0,))",
    "x[:32, :]",
    "x[3]",
    "x[:, 10:20]",
    "x[None, :, :]",
    "x[:, None]",
    "row[:, None]",
    "row[:, None] * x",
    "x.sum(axis=1)",
    "x.max(axis=-1, keepdims=True)",
    "jnp.sum(x)",
    "i.mean(axis=0)",
    "x.astype(jnp.bfloat16)",
    "lax.convert_element_type(x, jnp.float16)",
    "jnp.exp(i)",
    "jnp.exp2(x - 1)",
    "jnp.abs(i)",
    "jnp.clip(x, 0, 1)",
    "jnp.clip(row[:, None], 0, x)",
    "jnp.where(x > 0, x, 0)",
    "jnp.where(row[:, None] > 0, 1.0, h)",
    "jnp.zeros_like(x)",
    "jnp.full_like(x, 2, dtype=jnp.int32)",
    "jnp.zeros((M, N))",
    "jnp.ones((N,), jnp.bfloat16)",
    "jnp.full((M,), 2.0)",
    "jnp.full((M, N), 2, jnp.float16)",
    "jnp.float32(3) * h[0, 0]",
    "math.sqrt(M) * h",
    "relu(x)",
    "relu(x * 2, 1.0)",
    "(x if M == 64 else x * 2)",
]


@pytest.mark.parametrize("expression", KNOWN)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_inferred_is_what_jax_makes_of_it(expression: str, dtype: str) -> None:
    found, real = inferred(expression, dtype), actual(expression, dtype)

    assert (found.shape, found.dtype) == (real.shape, str(real.dtype))


@pytest.mark.parametrize(
    "expression",
    [
        "x @ x.T",
        "jnp.dot(x, x.T)",
        "jnp.linalg.inv(x)",
        "unknown(x)",
        "x.mystery()",
        "[x][0]",
        "x.sum(axis=axis)",
        "x.reshape(*shape)",
    ],
)
def test_what_is_not_certain_stays_unknown(expression: str) -> None:
    assert inferred(expression).shape is None


def test_the_carry_of_a_loop_keeps_the_type_of_its_start() -> None:
    assert inferred("lax.fori_loop(0, 4, lambda k, c: c * 2, x)").show() == "float32[64,128]"


def test_names_that_build_on_names_cost_no_more_than_their_number() -> None:
    lines = ["    v0 = jnp.zeros((M, N), jnp.float32)"]
    lines += [f"    v{k + 1} = v{k} + v{k} + v{k}" for k in range(14)]
    module = Facts.parse(HEAD + "def run():\n" + "\n".join(lines) + "\n    v14", "m.py")
    [last] = [n for n in ast.walk(module.tree) if isinstance(n, ast.Expr)][-1:]

    assert Shapes(module, Accumulators(module)).of(last.value).shape == (64, 128)


def reaching(body: str) -> object:
    """The definition that reaches `x` in the last statement, `use(x)`, of a function of `x`."""
    text = "def f(x, flag):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    module = Facts.parse(text, "m.py")
    name = [n for n in ast.walk(module.tree) if isinstance(n, ast.Name) and n.id == "x"]
    last = max((n for n in name if isinstance(n.ctx, ast.Load)), key=lambda n: n.lineno)
    return Reaching(module.names).of(last)


def test_the_last_assignment_before_a_use_reaches_it() -> None:
    found = reaching("x = 1\nx = 2\nuse(x)")

    assert isinstance(found, Assigned)
    assert ast.unparse(found.value) == "2"


def test_a_parameter_reaches_a_use_that_only_a_later_assignment_follows() -> None:
    assert isinstance(reaching("if flag:\n    use(x)\nx = 2"), Parameter)


def test_an_update_reaches_a_use() -> None:
    assert isinstance(reaching("x *= 2\nuse(x)"), Updated)


@pytest.mark.parametrize(
    "body",
    [
        "if flag:\n    x = 1\nuse(x)",
        "for _ in range(2):\n    use(x)\n    x = 1",
        "try:\n    x = 1\nexcept ValueError:\n    pass\nuse(x)",
        "x = 1\n\ndef g():\n    nonlocal x\n    x = 2\n\ng()\nuse(x)",
    ],
)
def test_where_several_definitions_may_reach_a_use_none_is_chosen(body: str) -> None:
    assert reaching(body) is None


def test_a_reshape_is_found_below_elementwise_work_by_scalars_alone() -> None:
    text = f"""{HEAD}
def kernel(a, b, acc):
    plgpu.wgmma(acc, a, b)
    flat = acc[...].reshape(-1)
    acc[...] = jnp.exp(2 * flat) / 3
    acc[...] = (acc[...].reshape(-1) + other(acc)).reshape(acc.shape)
"""
    module = Facts.parse(text, "m.py")
    traffic = Traffic(module)
    paths = Paths(module.names, traffic.shapes)
    first, second = traffic.stores()

    found = paths.reshaped(first.value, first.held.shape)
    assert found is not None
    assert [ast.unparse(node) for node in found] == ["acc[...].reshape(-1)", "acc[...]"]
    assert paths.reshaped(second.value, second.held.shape) is None
