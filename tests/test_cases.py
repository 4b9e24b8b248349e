"""The case grammar, and the cases that a file declares or implies."""

from __future__ import annotations

from contextlib import suppress
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_fix.dtypes import DTYPES
from pallas_fix.facts import Facts
from pallas_fix.verify.arguments import KEYS, Array, Group, Key, Literal, Values
from pallas_fix.verify.cases import Case, CaseError, declared_cases, parse_case
from pallas_fix.verify.derive import derived_cases

ROUND_TRIPS = [
    "main()",
    "matmul(bf16[192,256], f32[])",
    "kernels/mm-v2.py:Matmul.run(f8_e4m3fn[8,128]) @ tpu7x, v6e",
    "f(i32[8]:range(-1,64), f32[3]:zeros, u8[2]:file(data/x 1.npy))",
    "f(key<fry>[], key<rbg>[4])",
    "f(jnp.bfloat16, np.int8, (dtype<f8_e4m3fn>,), out=jnp.bool)",
    "f((f32[2],), [1, -2.5, 'a, b'], {'k': f32[2], 3: None}, flag=True, x=bool[])",
    "f() @ h100",
    "pkg/mod.py:f = make.args",
    "f = make @ b200",
    "<module>()",
]


@pytest.mark.parametrize("text", ROUND_TRIPS)
def test_canonical_text_parses_to_itself(text: str) -> None:
    assert str(parse_case(text)) == text


def test_parts_of_a_case() -> None:
    case = parse_case(" k.py : f( bf16[ 8,128 ] , n = 4 )@TPU7X ")
    assert case == Case(
        entry="f",
        args=(Array("bf16", (8, 128)),),
        kwargs=(("n", Literal(4)),),
        path="k.py",
        targets=("tpu7x",),
    )


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "it is empty"),
        ("f", 2, "expected '(', found 'the end'"),
        ("5", 1, "expected the name of a function, found '5'"),
        ("f(bf17[8])", 3, "'bf17' is no dtype"),
        ("f(x)", 3, "use a maker"),
        ("f(jnp.bf16)", 7, "'bf16' is no dtype (known: bool int2"),
        ("f(dtype<int8>)", 9, "'int8' is no dtype (known: bool i2"),
        ("f(1 2)", 5, "expected ',', found '2'"),
        ("f(a=1, 2)", 8, "follows one with a name"),
        ("f(a=1, a=2)", 8, "'a' is given twice"),
        ("f() @ v99", 7, "unknown target 'v99' (known: v4,"),
        ("f() @ v4 v5e", 10, "expected the end, found 'v5e'"),
        ("f(f32[n])", 7, "a size (a whole number)"),
        ("f(f32[-1])", 7, "a size (a whole number)"),
        ("f((1))", 5, "a tuple of one value ends in ',)'"),
        ("f(i32[2]:range(3,3))", 10, "the range is empty"),
        ("f(i32[2]:ones)", 10, "values are 'range(low,high)'"),
        ("f(key<x>[])", 7, "unknown kind of key 'x'"),
        ("f(*)", 3, "expected an argument, found '*'"),
        ("k.py:f(bf16[8", 14, "a bracket or a quote is not closed"),
        ("<module>(1)", 1, "'<module>' takes no arguments"),
    ],
)
def test_errors_say_where_and_why(text: str, column: int, message: str) -> None:
    with pytest.raises(CaseError) as caught:
        parse_case(text)
    assert caught.value.column == column
    assert message in caught.value.message
    assert "\n" not in str(caught.value)


ARRAYS = st.builds(
    Array,
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.integers(0, 4096), max_size=4).map(tuple),
    st.none() | st.just(Values("zeros")) | st.just(Values("range", -3, 9)),
)
LITERALS = st.builds(
    Literal,
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
) | st.builds(Literal, st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=9))
KEY_ARGUMENTS = st.builds(Key, st.sampled_from(sorted(KEYS)), st.just(()) | st.just((4,)))
VALUES = st.recursive(
    ARRAYS | LITERALS | KEY_ARGUMENTS,
    lambda inner: st.builds(
        Group, st.sampled_from(["(", "["]), st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=6,
)


@given(st.lists(VALUES, max_size=4).map(tuple), st.dictionaries(st.just("name"), VALUES))
def test_every_case_survives_its_text(args: tuple[Array, ...], named: dict[str, Array]) -> None:
    case = Case("mod.f", args, tuple(named.items()))
    assert parse_case(str(case)) == case


@given(st.text(alphabet="f(b16[8,]){}:=@.'\"<> \\k\n#é", max_size=24))
def test_any_text_is_a_case_or_a_case_error(text: str) -> None:
    with suppress(CaseError):
        assert isinstance(parse_case(text), Case)


def test_declared_cases_come_from_comments_alone() -> None:
    text = dedent("""\
        '''# pallas-fix: case in_a_string()'''
        # pallas-fix: case f(f32[8])

        def f(x):  # pallas-fix: case f(f32[
            return x
        #pallas-fix: case g() @ h100
        # pallas-fix: ignore[TPU001]
    """)
    found = list(declared_cases(text))
    assert [line for line, _ in found] == [2, 4, 6]
    assert str(found[0][1]) == "f(f32[8])"
    assert isinstance(found[1][1], CaseError)
    assert str(found[2][1]) == "g() @ h100"


def test_declared_cases_of_a_broken_file() -> None:
    found = list(declared_cases("# pallas-fix: case f()\nx = (\n"))
    assert [str(case) for _, case in found] == ["f()"]


HEADER = """\
import jax, jax.numpy as jnp, numpy as np, pytest
from jax import random
from jax.experimental import pallas as pl
S = jax.ShapeDtypeStruct
M, K = 64, 2 * 128
def kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] @ y_ref[...]
def matmul(x, y, **kw):
    return pl.pallas_call(kernel, out_shape=S((M, K), jnp.float32))(x, y)
"""


def derived(body: str, wanted: str = "kernel") -> list[str]:
    facts = Facts.parse(HEADER + dedent(body), "kernel.py")
    return [str(case) for case in derived_cases(facts, [wanted])]


@pytest.mark.parametrize(
    ("body", "case"),
    [
        (
            "def run(n): return matmul(jnp.ones((M, K), jnp.bfloat16), jnp.zeros([K, K]))",
            "matmul(bf16[64,256], f32[256,256])",
        ),
        (
            """
            def run(n, dtype=jnp.float16):
                shape = (M, K)
                x = random.normal(random.key(0), shape, dtype=dtype)
                jax.jit(matmul)(x, S((K, K), "int8"), flag=False)
            """,
            "matmul(f16[64,256], i8[256,256], flag=False)",
        ),
        (
            "def run(n): matmul(jnp.ones(3), jnp.ones(3).astype('u1'))",
            None,
        ),
        (
            "def run(n): matmul(random.randint(random.key(0), (8,), 0, 5), random.key(1))",
            "matmul(i32[8]:range(0,5), key<fry>[])",
        ),
        ("def run(n): matmul(jnp.ones((n, K)), jnp.ones((K, K)))", None),
        ("def run(n):\n    x = jnp.ones(3)\n    x = x.T\n    matmul(x, x)", None),
        ("def run(matmul): matmul(jnp.ones(3), jnp.ones(3))", None),
        ("def run(n): matmul(np.ones(3), np.ones(3))", None),
        ("def run(n): matmul(*args, jnp.ones(3))", None),
        ("class T:\n  def test(self): matmul(jnp.ones(3), jnp.ones(4))", "matmul(f32[3], f32[4])"),
        ("def test_it(): assert (matmul(a(), b()) == 1).all()", "test_it()"),
        ("@pytest.mark.slow\ndef test_it(): matmul(a(), b())", "test_it()"),
        ("@pytest.mark.skip\ndef test_it(): matmul(a(), b())", None),
        ("@pytest.fixture\ndef made(): return matmul(a(), b())", None),
        ("def test_it(made): matmul(made, made)", None),
        ("def main(): return helper()\ndef helper(): return matmul(a(), b())", "main()"),
        ("def main(): return 1", None),
        ("print(matmul(a, b))", "<module>()"),
        ("if True:\n    pass\nf = jax.jit(matmul)", None),
        (
            "from jax.numpy import ones as made, bfloat16 as bf\n"
            "def run(n): matmul(made((M, K), bf), made(3))",
            "matmul(bf16[64,256], f32[3])",
        ),
        (
            "import jax.numpy\ndef run(n): matmul(jax.numpy.ones(3), jax.numpy.full(4, 1, 'int8'))",
            "matmul(f32[3], i8[4])",
        ),
        (
            """
            def run(n, rows=16, *, dtype=jnp.bfloat16):
                cols = pl.cdiv(K, 2) if rows > 8 else max(rows, K)
                made, shape = jnp.zeros, (rows, *(cols,))
                wide = (rows, cols << 1)
                matmul(made(wide, dtype), made(wide[1:2] if n else cols, dtype))
            """,
            None,
        ),
        (
            """
            def run(n, rows=16, *, dtype=jnp.bfloat16):
                cols = pl.cdiv(K, 2) if rows > 8 else max(rows, K)
                wide = (rows, cols << 1)
                made = jnp.zeros
                x, y = made(wide, dtype), made(wide[1], dtype)
                matmul(x, y)
            """,
            "matmul(bf16[16,256], bf16[256])",
        ),
        (
            "def run(n):\n  local = jax.jit(matmul)\n  local(jnp.ones(3), jnp.ones(4))",
            "matmul(f32[3], f32[4])",
        ),
        (
            "alias = matmul\ndef run(n): alias(jnp.ones(3), (jnp.ones(4), [2]))",
            "alias(f32[3], (f32[4], (2,)))",
        ),
        ("def run(kernel): kernel(jnp.ones(3), jnp.ones(3))", None),
        ("def run(n, K=8):\n  K += 1\n  matmul(jnp.ones(K), jnp.ones(3))", None),
        ("def run(n, x=jnp.ones(2)): matmul(x, jnp.ones(*n))", None),
        ("def run(n, x=jnp.ones(2)): matmul(x, x)", "matmul(f32[2], f32[2])"),
        ("def run(jnp): matmul(jnp.ones(3), jnp.ones(3))", None),
        ("def main():\n  kernel = 1\n  return kernel", None),
        ("class T:\n  def go(self): matmul(a(), b())\ndef main(): T().go()", "main()"),
        ("from m import *\nx = (x, 1)\nmatmul(x, jnp.ones(3))", "<module>()"),
    ],
)
def test_derived_cases(body: str, case: str | None) -> None:
    assert derived(body)[:1] == ([case] if case else [])


LAUNCH = """
def launch(x, y):
    assert x.dtype == jnp.bfloat16
    return pl.pallas_call(kernel, grid=(2, 4),
        in_specs=[pl.BlockSpec((64, 256), {index}), pl.BlockSpec((256, 128), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((64, 128), lambda i, j: (i, j)),
        out_shape=S((128, 512), jnp.float32))(x, y{cast})
"""


def test_a_launch_with_constant_specs_and_dtypes() -> None:
    text = LAUNCH.format(index="lambda i, j: (i, 0)", cast=".astype('float32')")
    assert derived(text) == ["launch(bf16[128,256], f32[256,512])"]


@pytest.mark.parametrize(
    ("index", "cast"), [("lambda i, j: (i, 0)", ""), ("lambda i, j: (i // 2, 0)", ".astype('i4')")]
)
def test_a_launch_that_leaves_something_open(index: str, cast: str) -> None:
    assert derived(LAUNCH.format(index=index, cast=cast)) == []


@pytest.mark.parametrize(
    "launch",
    [
        "call(x, y)",
        "pl.pallas_call(kernel, grid_spec=pl.GridSpec(grid=GRID, in_specs=[left, right]))(x, y)",
        "pl.pallas_call(kernel, grid=(GRID[0], 4), in_specs=(left, right))(x, y)",
    ],
)
def test_a_launch_is_read_through_names(launch: str) -> None:
    text = f"""
    from jax.experimental.pallas import BlockSpec as Spec
    GRID, FIRST = (2, 4), 0
    def column(i, j):
        return FIRST, j
    def launch(x, y):
        half = jnp.dtype('bfloat16')
        assert x.dtype == half
        assert y.dtype == half
        left, right = Spec((64, K), lambda i, j: (i, 0)), Spec((K, 2 * M), index_map=column)
        call = pl.pallas_call(kernel, grid=GRID, in_specs=[left, right])
        return {launch}
    """
    if not launch.startswith("call"):
        text = text.replace("call = pl.pallas_call(kernel, grid=GRID, in_specs=[left, right])", "")
    assert derived(text) == ["launch(bf16[128,256], bf16[256,512])"]
