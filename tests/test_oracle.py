"""What a file before a repair computes: as its author meant it. The fixtures show the rest."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import numpy as np
import pytest

from emulated import Emulator, emulator, line_of

pytestmark = [pytest.mark.compile, pytest.mark.newest]

PRELUDE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32, BF16 = jnp.float32, jnp.bfloat16
push, acc_lhs, pop = pltpu.matmul_push_rhs, pltpu.matmul_acc_lhs, pltpu.matmul_pop
X = jax.random.normal(jax.random.key(0), (64, 256), BF16)
Y = jax.random.normal(jax.random.key(1), (256, 256), BF16)


def out(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def dot(x, y):
    return jnp.dot(x.astype(F32), y.astype(F32), precision=jax.lax.Precision.HIGHEST)
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


def kernel(text: str) -> str:
    return PRELUDE + dedent(text)


def test_without_the_oracle_the_file_before_fails_as_with_jax(worker: Emulator) -> None:
    text = kernel("""
    def body(x, y, o, acc):
        push(y[...], 0, 0)
        acc_lhs(acc, x[...], load_staged_rhs=0)
        o[...] = pop(acc)

    def main():
        return pl.pallas_call(
            body, out_shape=out(64, 256), scratch_shapes=[pltpu.VMEM((64, 256), F32)]
        )(X, Y)
    """)
    assert "Expected an accumulator ref" in worker.run(text).failure
    assert worker.run(text, oracle=True).failure == ""


def test_an_accumulator_in_memory_keeps_its_sum_until_it_is_popped(worker: Emulator) -> None:
    result = worker.run(
        kernel("""
        def body(x, y, o, acc):
            push(y[...], 0, 1)
            acc_lhs(acc, x[...], load_staged_rhs=0)
            o[0] = acc[...]
            acc_lhs(acc, x[...])
            acc[...] *= 2
            o[1] = pop(acc)
            o[2] = acc[...]

        def main():
            got = pl.pallas_call(
                body, out_shape=out(3, 64, 256), scratch_shapes=[pltpu.VMEM((64, 256), F32)]
            )(X, Y)
            return got, jnp.stack([dot(X, Y), 4 * dot(X, Y), 0 * dot(X, Y)])
        """),
        oracle=True,
    )
    [[got, want]] = result.arrays
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3)
    assert result.kinds == []


def test_a_narrow_accumulator_sums_in_float32(worker: Emulator) -> None:
    result = worker.run(
        kernel("""
        def body(x, y, o, p, acc):
            push(y[...], 0, 0)
            acc_lhs(acc, x[...], load_staged_rhs=0)
            @pl.loop(0, 20)
            def _(i):
                acc_lhs(acc, x[...])
            o[...] = acc[...].astype(F32)
            p[...] = acc[...] * 2

        def main():
            got, half = pl.pallas_call(
                body,
                out_shape=(out(64, 256), out(64, 256, dtype=BF16)),
                scratch_shapes=[pltpu.VMEM((64, 256), BF16)],
            )(X, Y)
            return got, 21 * dot(X, Y), half.astype(F32), (got.astype(BF16) * 2).astype(F32)
        """),
        oracle=True,
    )
    [[got, want, half, rounded]] = result.arrays
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3)
    np.testing.assert_array_equal(half, rounded)


def test_what_no_accumulation_reached_stays_unwritten(worker: Emulator) -> None:
    result = worker.run(
        kernel("""
        def body(x, y, o):
            push(y[...], 0, 0)
            acc_lhs(o.at[pl.ds(0, 64)], x[...], load_staged_rhs=0)

        def main():
            return pl.pallas_call(body, out_shape=out(128, 256))(X, Y), dot(X, Y)
        """),
        oracle=True,
    )
    [[got, want]] = result.arrays
    np.testing.assert_allclose(got[:64], want, rtol=2e-5, atol=2e-3)
    assert np.isnan(got[64:]).all()


def test_weights_on_two_mxus_are_no_guess(worker: Emulator) -> None:
    text = kernel("""
    def body(x, y, o, acc):
        push(y[...], 0, 0)
        push(y[...] * 2, 0, 1)
        acc_lhs(acc, x[...], load_staged_rhs=0)  # which?
        o[...] = pop(acc)

    def main():
        return pl.pallas_call(
            body, out_shape=out(64, 256), scratch_shapes=[pltpu.VMEM((64, 256), F32)]
        )(X, Y)
    """)
    result = worker.run(text, oracle=True)
    [[got]] = result.arrays
    assert np.isnan(got).all()
    assert f"mxu-unknown {line_of(text, 'which?')}" in result.kinds


def test_accumulator_memory_says_which_mxu_is_meant(worker: Emulator) -> None:
    result = worker.run(
        kernel("""
        def body(x, y, o):
            def scope(first, second):
                push(y[...], 0, 0)
                push(y[...] * 2, 0, 1)
                acc_lhs(second, x[...], load_staged_rhs=0)
                acc_lhs(first, x[...], load_staged_rhs=0)
                o[0] = first[...]
                o[1] = second[...]

            space = pltpu.ACC
            pl.run_scoped(scope, space(0)((64, 256), F32), space(1)((64, 256), F32))

        def main():
            got = pl.pallas_call(body, out_shape=out(2, 64, 256))(X, Y)
            return got, jnp.stack([dot(X, Y), 2 * dot(X, Y)])
        """),
        oracle=True,
    )
    [[got, want]] = result.arrays
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3)
    assert result.kinds == []


def test_parts_of_accumulator_memory_are_found_at_run_time(worker: Emulator) -> None:
    result = worker.run(
        kernel("""
        def body(x, y, o):
            def scope(acc):
                push(y[...], 0, 0)
                acc_lhs(acc.at[1], x[...], load_staged_rhs=0)
                @pl.loop(0, 2)
                def _(i):
                    acc[i, pl.ds(8 * i, 8), :] += 1.0
                    o[i] = pop(acc.at[i])
                o[2] = acc[1]

            pl.run_scoped(scope, pltpu.ACC(0)((2, 64, 256), F32))

        def main():
            zero = jnp.zeros((64, 256), F32)
            want = [zero.at[:8].add(1), dot(X, Y).at[8:16].add(1), zero]
            return pl.pallas_call(body, out_shape=out(3, 64, 256))(X, Y), jnp.stack(want)
        """),
        oracle=True,
    )
    [[got, want]] = result.arrays
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3)


def test_a_scope_that_begins_again_has_what_nobody_has_read(worker: Emulator) -> None:
    result = worker.run(
        kernel("""
        def body(x, y, o):
            def scope(acc):
                push(y[...], 0, 0)
                acc_lhs(acc, x[...], load_staged_rhs=0)
                @pl.when(pl.program_id(0) > 0)
                def _():
                    o[...] = acc[...]

            pl.run_scoped(scope, pltpu.ACC(0)((64, 256), F32))

        def main():
            got = pl.pallas_call(
                body,
                grid=(3,),
                out_specs=pl.BlockSpec((None, 64, 256), lambda i: (i, 0, 0)),
                out_shape=out(3, 64, 256),
            )(X, Y)
            return got[1:], jnp.stack([2 * dot(X, Y), dot(X, Y)])
        """),
        oracle=True,
    )
    [[got, want]] = result.arrays
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3)


def test_a_sum_that_is_never_read_is_told(worker: Emulator) -> None:
    text = kernel("""
    def body(x, y, o):
        def scope(acc):
            push(y[...], 0, 0)
            acc_lhs(acc, x[...], load_staged_rhs=0)  # lost
            o[...] = x[...].astype(F32)

        pl.run_scoped(scope, pltpu.ACC((64, 256), F32))

    def main():
        return pl.pallas_call(body, out_shape=out(64, 256))(X, Y)
    """)
    assert worker.run(text, oracle=True).kinds == [f"acc-at-exit {line_of(text, 'lost')}"]


@pytest.mark.parametrize(
    ("acc", "message"),
    [
        ("jnp.zeros((64, 256), F32)", "Can only call `matmul_acc_lhs` on a `Ref`"),
        ("o.at[pl.ds(0, 32)]", "(32, 256) does not match the shape of the lhs (64, 256)"),
    ],
)
def test_what_has_no_clear_meaning_fails(acc: str, message: str, worker: Emulator) -> None:
    text = kernel(f"""
    def body(x, y, o):
        push(y[...], 0, 0)
        acc_lhs({acc}, x[...], load_staged_rhs=0)

    def main():
        return pl.pallas_call(body, out_shape=out(64, 256))(X, Y)
    """)
    assert message in worker.run(text, oracle=True).failure
