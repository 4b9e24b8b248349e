"""Launches, helpers and allocations on the emulated chip."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import numpy as np
import pytest

from emulated import Emulator, assert_close, emulator
from mxu_kernels import ADDRESS, APIS, PRELUDE, REF, run


@pytest.fixture(scope="module")
def tpu() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


HELPERS = """
@jax.jit
def times(x, y):
    push(y, 0, 0)
    pltpu.matmul_acc_lhs(0, x, 0, load_staged_rhs=0)
    return pltpu.matmul_pop(0, (64, 256), F32, 0)

def through_jit(x, y, o):
    o[...] = times(x[...], y[...]) + times(x[...], y[...])

def also_through_jit(x, y, o):
    @pl.loop(0, 2)
    def _(i):
        o[...] = times(x[...], y[...])

def twice(body, carry):
    return jax.lax.fori_loop(0, 2, body, carry)

def loop_body(i, carry):
    pltpu.matmul_push_rhs(jnp.ones((256, 256), BF16), 0, 0)
    pltpu.matmul_acc_lhs(0, jnp.ones((64, 256), BF16), 0, load_staged_rhs=0)
    return carry + pltpu.matmul_pop(0, (64, 256), F32, 0)

def through_a_body_of_the_module(x, y, o):
    o[...] = twice(loop_body, jnp.zeros((64, 256), F32))

class Matmul:
    def __call__(self, x, y, o, scale=1):
        with jax.named_scope("matmul"):
            o[...] = times(x[...], y[...]) * scale

def main(x, y):
    shape = out(64, 256)
    scaled = functools.partial(Matmul(), scale=2)
    ones = jnp.full((64, 256), 512, F32)
    call = lambda body: pl.pallas_call(body, out_shape=shape)(x, y)
    def step(carry, _):
        return carry + call(through_jit), None
    return [
        call(through_jit), 2 * dot(x, y),
        call(also_through_jit), dot(x, y),
        call(through_a_body_of_the_module), ones,
        call(through_a_body_of_the_module) * 2, ones * 2,
        pl.pallas_call(scaled, out_shape=shape)(x, y), 2 * dot(x, y),
        jax.lax.scan(step, jnp.zeros((64, 256), F32), None, length=2)[0], 4 * dot(x, y),
    ]
"""


def test_helpers_that_jax_caches(tpu: Emulator) -> None:
    result = run(tpu, "", HELPERS, "main(bf16[64,256], bf16[256,256])")
    assert_close(result)
    assert result.hazards == ()


LAUNCHES = """
MESH = pltpu.create_tensorcore_mesh("core", num_cores=1)

@pl.kernel(out_type=out(64, 256), mesh=MESH, scratch_types=SCRATCH)
def decorated(x, y, o, a, b, c):
    pltpu.sync_copy(x, a)
    pltpu.sync_copy(y, b)
    acc = allocate(64)
    push(b[...], 0, 0)
    accumulate(acc, a[...], 0)
    c[...] = pop(acc)
    pltpu.sync_copy(c, o)

def body(x, y, o, *, a, b, c):
    decorated_body(x, y, o, a, b, c)

def decorated_body(x, y, o, a, b, c):
    pltpu.sync_copy(x, a)
    pltpu.sync_copy(y, b)
    acc = allocate(64)
    push(b[...], 0, 0)
    accumulate(acc, a[...], 0)
    c[...] = pop(acc)
    pltpu.sync_copy(c, o)

called = pl.kernel(body, out(64, 256), mesh=MESH, scratch_types=dict(zip("abc", SCRATCH)))

def mapped(x, y):
    def stateful(refs):
        x, y, o = refs
        @pl.core_map(MESH)
        def _():
            pl.run_scoped(functools.partial(decorated_body, x, y, o), *SCRATCH)
    _, _, result = pl.run_state(stateful)((x, y, jnp.zeros((64, 256), F32)))
    return result

def main(x, y):
    return [decorated(x, y), dot(x, y), called(x, y), dot(x, y), mapped(x, y), dot(x, y)]
"""


@pytest.mark.parametrize("api", APIS)
def test_launches_on_a_mesh(tpu: Emulator, api: str) -> None:
    result = run(tpu, api, LAUNCHES, "main(bf16[64,256], bf16[256,256])")
    assert_close(result)
    assert result.hazards == ()


CORES = """
MESH = pltpu.create_tensorcore_mesh("core", num_cores=2)

def body(x, y, o, a, b, c):
    core = jax.lax.axis_index("core")
    rows = pl.ds(core * 64, 64)
    pltpu.sync_copy(x.at[rows, :], a)
    pltpu.sync_copy(y.at[core], b)
    acc = allocate(64)
    @pl.loop(0, 8)
    def _(i):
        push(b[...], 0, 0)
        accumulate(acc, a[...], 0)
    c[...] = pop(acc)
    pltpu.sync_copy(c, o.at[rows, :])

def main(x, y):
    kernel = pl.kernel(body, out(128, 256), mesh=MESH, scratch_types=SCRATCH)
    return kernel(x, y), 8 * jnp.concatenate([dot(x[:64], y[0]), dot(x[64:], y[1])])
"""


def test_each_core_has_an_mxu_of_its_own(tpu: Emulator) -> None:
    result = run(tpu, ADDRESS, CORES, "main(bf16[128,256], bf16[2,256,256])")
    assert_close(result)
    assert result.hazards == ()
    assert result.steps == 16


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


def test_ordinary_kernels_are_interpreted(tpu: Emulator) -> None:
    text = """
    def double(x, o):
        o[...] = x[...] * 2

    def main(x):
        rows = Spec((8, 128), lambda i: (i, 0))
        call = pl.pallas_call(
            double, out_shape=out(32, 128), grid=(4,), in_specs=[rows], out_specs=rows,
            interpret=True)
        return call(x), x * 2
    """
    result = run(tpu, "", text, "main(f32[32,128])")
    assert_close(result)
    assert result.ran_on == "CPU (interpreted)"
    assert result.steps == 0


def test_what_a_kernel_does_not_write_is_undefined(tpu: Emulator) -> None:
    text = """
    def half(x, o):
        o[0:8, :] = x[0:8, :]

    def main(x):
        return pl.pallas_call(half, out_shape=out(16, 128), interpret=True)(x)
    """
    [[array]] = run(tpu, "", text, "main(f32[16,128])").arrays
    assert np.isfinite(array[:8]).all()
    assert np.isnan(array[8:]).all()
