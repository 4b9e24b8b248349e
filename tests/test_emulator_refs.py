"""FIFOs and accumulator refs on the emulated chip."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import numpy as np
import pytest

from emulated import Emulator, assert_close, emulator
from mxu_kernels import PRELUDE, REF, run

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def tpu() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


FIFO = """
def fifo(x, y, z, o):
    push(y[...], 0, 0)
    push(z[...], 1, 0)
    for part in range(4):
        rows = slice(part * 16, part * 16 + 16)
        pltpu.matmul_lhs_fifo(x[rows, :], 0, load_staged_rhs=0 if part == 0 else None)
        o[rows, :] = pltpu.matmul_pop_fifo((16, 256), F32, 0)
    pltpu.matmul_lhs_fifo(x[0:16, :], 0, load_staged_rhs=1)
    pltpu.matmul_lhs_fifo(x[16:32, :], 0)
    o[64:80, :] = pltpu.matmul_pop_fifo((16, 256), F32, 0)
    o[80:96, :] = pltpu.matmul_pop_fifo((16, 256), F32, 0)

def summed(x, y, z, o):
    first, second = allocate(64), allocate(32, above=64)
    push(y[...], 0, 0)
    push(z[...], 1, 0)
    accumulate(first, x[...], 0)
    accumulate(second, x[0:32, :], 1)
    o[0:64, :] = pop(first)
    o[64:96, :] = pop(second)

def true_is_register_one(x, y, z, o):
    push(y[...], 0, 0)
    push(z[...], 1, 0)
    pltpu.matmul_lhs_fifo(x[...], 0, load_staged_rhs=True)
    o[0:64, :] = pltpu.matmul_pop_fifo((64, 256), F32, 0)
    pltpu.matmul_lhs_fifo(x[0:32, :], 0, load_staged_rhs=0)
    o[64:96, :] = pltpu.matmul_pop_fifo((32, 256), F32, 0)

def main(x, y, z):
    want = jnp.concatenate([dot(x, y), dot(x[:32], z)])
    other = jnp.concatenate([dot(x, z), dot(x[:32], y)])
    bodies = (fifo, summed, true_is_register_one)
    results = [pl.pallas_call(body, out_shape=out(96, 256))(x, y, z) for body in bodies]
    return [results[0], want, results[1], want, results[2], other]
"""


@pytest.mark.newest
def test_fifo_and_accumulators_agree_bit_for_bit(tpu: Emulator) -> None:
    result = run(tpu, REF, FIFO, "main(bf16[64,256], bf16[256,256], bf16[256,256])")
    assert_close(result)
    assert result.hazards == ()
    [[fifo, _, summed, *_]] = result.arrays
    np.testing.assert_array_equal(fifo, summed)


@pytest.mark.newest
def test_older_chips_have_fifos(tpu: Emulator) -> None:
    text = """
    def kernel(x, y, o):
        for mxu in range(4):
            push(y[...], 0, mxu)
            pltpu.matmul_lhs_fifo(x[...], mxu, load_staged_rhs=0)
        for mxu in range(4):
            o[mxu] = pltpu.matmul_pop_fifo((16, 128), F32, mxu)

    def main(x, y):
        want = jnp.broadcast_to(dot(x, y), (4, 16, 128))
        return [pl.pallas_call(kernel, out_shape=out(4, 16, 128))(x, y), want]
    """
    result = tpu.run(PRELUDE + dedent(text), "main(bf16[16,128], bf16[128,128])", target="v5e")
    assert result.failure == ""
    assert_close(result)
    assert result.hazards == ()


@pytest.mark.newest
def test_refs_of_scopes(tpu: Emulator) -> None:
    text = """
    def scoped(x, y, o):
        def body(acc, tmp, *, other):
            tmp[...] = x[...]
            push(y[...], 0, 0)
            push(y[...], 0, 1)
            pltpu.matmul_acc_lhs(acc, tmp[...], 0)
            pltpu.matmul_acc_lhs(other, tmp[...], load_staged_rhs=0)
            return pltpu.matmul_pop(acc) + pltpu.matmul_pop(other)
        o[...] = pl.run_scoped(
            body, pltpu.ACC(0)((64, 256), F32), pltpu.VMEM((64, 256), BF16),
            other=pltpu.ACC(1)((64, 256), F32))

    def again_and_again(x, y, o):
        @pl.with_scoped(pltpu.ACC(0)((1024, 256), F32))
        def all_of_it(acc):
            push(y[...], 0, 0)
            pltpu.matmul_acc_lhs(acc, jnp.tile(x[...], (16, 1)), 0)
            return pltpu.matmul_pop(acc)[0:64, :]
        o[...] = all_of_it() + all_of_it()

    def main(x, y):
        call = lambda body: pl.pallas_call(body, out_shape=out(64, 256))(x, y)
        return [call(scoped), 2 * dot(x, y), call(again_and_again), 2 * dot(x, y)]
    """
    result = run(tpu, "", text, "main(bf16[64,256], bf16[256,256])")
    assert_close(result)
    assert result.hazards == ()


@pytest.mark.newest
def test_accumulators_pass_through_what_jax_caches(tpu: Emulator) -> None:
    text = """
    @jax.jit
    def step(acc, x, y):
        push(y, 0, 0)
        pltpu.matmul_acc_lhs(acc, x, load_staged_rhs=0)

    def kernel(x, y, o):
        first, second = allocate(64), allocate(64)
        step(first, x[...], y[...])
        step(second, x[...], y[...])
        step(second, x[...], y[...])
        jax.lax.cond(
            pl.program_id(0) == 0, lambda acc: step(acc, x[...], y[...]), lambda acc: None, first)
        o[...] = pop(first) * 10 + pop(second)

    def main(x, y):
        return [pl.pallas_call(kernel, out_shape=out(64, 256), grid=(1,))(x, y), 22 * dot(x, y)]
    """
    result = run(tpu, REF, text, "main(bf16[64,256], bf16[256,256])")
    assert_close(result)
    assert result.hazards == ()
