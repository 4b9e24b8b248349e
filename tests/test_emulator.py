"""Kernels of the explicit MXU API on the emulated chip: numbers, hazards, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import numpy as np
import pytest

from emulated import Emulator, Run, emulator

PRELUDE = '''
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32, BF16 = jnp.float32, jnp.bfloat16
ANY = pl.BlockSpec(memory_space=pl.ANY)
push = pltpu.matmul_push_rhs


def out(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def dot(x, y):
    """What the MXU is to compute, by jax itself: operands of any type, sums in float32."""
    if jnp.issubdtype(x.dtype, jnp.integer):
        return jnp.dot(x.astype(jnp.int32), y.astype(jnp.int32))
    highest = jax.lax.Precision.HIGHEST
    return jnp.dot(x.astype(F32), y.astype(F32), precision=highest)
'''

ADDRESS = '''
def allocate(rows, mxu=0, above=0, dtype=F32):
    return above // 4, mxu, rows, dtype


def accumulate(acc, lhs, load=None):
    pltpu.matmul_acc_lhs(acc[0], lhs, acc[1], load_staged_rhs=load)


def pop(acc):
    return pltpu.matmul_pop(acc[0], (acc[2], 256), acc[3], acc[1])
'''
"""The API until jax 0.11.1. The emulator knows it under every jax."""

REF = '''
def allocate(rows, mxu=0, above=0, dtype=F32):
    return jax.empty_ref(out(rows, 256, dtype=dtype), memory_space=pltpu.ACC(mxu))


def accumulate(acc, lhs, load=None):
    pltpu.matmul_acc_lhs(acc, lhs, load_staged_rhs=load)


pop = pltpu.matmul_pop
'''
"""The API since jax 0.11.2."""

APIS = [
    pytest.param(ADDRESS, id="address"),
    pytest.param(REF, id="ref", marks=pytest.mark.newest),
]


@pytest.fixture(scope="module")
def tpu() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


def run(tpu: Emulator, api: str, text: str, case: str) -> Run:
    result = tpu.run(PRELUDE + api + dedent(text), case)
    assert result.failure == ""
    return result


def close(result: Run) -> None:
    """Assert that the outputs, in pairs of what came and what was wanted, agree within rounding."""
    [arrays] = result.arrays
    assert len(arrays) % 2 == 0
    for number, (got, want) in enumerate(zip(arrays[::2], arrays[1::2], strict=True)):
        assert got.dtype == want.dtype
        if got.dtype.kind == "i":
            np.testing.assert_array_equal(got, want, err_msg=f"output {number}")
        else:
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3, err_msg=f"output {number}")


def line(text: str, part: str) -> str:
    """`mod.py:line` of the one line that holds a part of the text."""
    [number] = [n for n, one in enumerate(dedent(text).split("\n"), 1) if part in one]
    return f"mod.py:{number}"


STRAIGHT = """
def single(x, y, o):
    acc = allocate(64)
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)
    o[...] = pop(acc)

def two_mxus(x, y, z, o, p):
    first, second = allocate(64), allocate(64, mxu=1)
    push(y[...], staging_register=0, mxu_index=0)
    push(z[...], staging_register=0, mxu_index=1)
    accumulate(first, x[...], 0)
    accumulate(second, x[...], 0)
    o[...] = pop(first)
    p[...] = pop(second)

def two_registers(x, y, z, o):
    acc = allocate(64)
    push(y[...], 0, 0)
    push(z[...], 1, 0)
    accumulate(acc, x[...], 0)
    accumulate(acc, x[...], 1)
    accumulate(acc, x[...])
    o[...] = pop(acc)

def two_accumulators(x, y, o):
    first, second = allocate(64), allocate(64, above=64)
    push(y[...], 0, 0)
    accumulate(first, x[...], 0)
    accumulate(second, x[...] * 2)
    o[0:64, :] = pop(first)
    o[64:128, :] = pop(second)

def main(x, y, z):
    o, p = pl.pallas_call(two_mxus, out_shape=(out(64, 256), out(64, 256)))(x, y, z)
    r = pl.pallas_call(two_registers, out_shape=out(64, 256))(x, y, z)
    a = pl.pallas_call(two_accumulators, out_shape=out(128, 256))(x, y)
    return [
        pl.pallas_call(single, out_shape=out(64, 256))(x, y), dot(x, y),
        o, dot(x, y), p, dot(x, z),
        r, dot(x, y) + 2 * dot(x, z),
        a, jnp.concatenate([dot(x, y), dot(x * 2, y)]),
    ]
"""


@pytest.mark.parametrize("api", APIS)
def test_straight_kernels(tpu: Emulator, api: str) -> None:
    result = run(tpu, api, STRAIGHT, "main(bf16[64,256], bf16[256,256], bf16[256,256])")
    close(result)
    assert result.hazards == ()
    assert result.ran_on == "CPU (emulated MXU)"
    assert result.steps == 8


@pytest.mark.newest
def test_both_apis_give_the_same_bits(tpu: Emulator) -> None:
    case = "main(bf16[64,256], bf16[256,256], bf16[256,256])"
    [old], [new] = (run(tpu, api, STRAIGHT, case).arrays for api in (ADDRESS, REF))
    assert [one.tobytes() for one in old] == [one.tobytes() for one in new]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f8_e4m3fn", "f8_e5m2", "i8"])
def test_types_and_transposes(tpu: Emulator, dtype: str) -> None:
    text = """
    def kernel(x, y, o, *, transpose, dtype):
        acc = allocate(96, dtype=dtype)
        push(y[...], 0, 0, transpose=transpose)
        accumulate(acc, x[...], 0)
        o[...] = pop(acc)

    def main(x, y):
        dtype = jnp.int32 if x.dtype == jnp.int8 else F32
        results = []
        for transpose in (False, True):
            body = functools.partial(kernel, transpose=transpose, dtype=dtype)
            result = pl.pallas_call(body, out_shape=out(96, 256, dtype=dtype))(x, y)
            results += [result, dot(x, y.T if transpose else y)]
        return results
    """
    close(run(tpu, ADDRESS, text, f"main({dtype}[96,256], {dtype}[256,256])"))


LOOPS = """
K = 1024

def fori(x, y, o):
    acc = allocate(64)
    def body(k, carry):
        rows = pl.ds(pl.multiple_of(k * 256, 256), 256)
        push(y[rows, :], 0, 0)
        accumulate(acc, x[:, rows], 0)
        return carry
    jax.lax.fori_loop(0, K // 256, body, 0)
    o[...] = pop(acc)

def double_buffered(x, y, o):
    acc = allocate(64)
    push(y[0:256, :], 0, 0)
    @pl.loop(0, K // 512)
    def _(pair):
        k = pair * 512
        push(y[pl.ds(k + 256, 256), :], 1, 0)
        accumulate(acc, x[:, pl.ds(k, 256)], 0)
        @pl.when(pair < K // 512 - 1)
        def _():
            push(y[pl.ds(k + 512, 256), :], 0, 0)
        accumulate(acc, x[:, pl.ds(k + 256, 256)], 1)
    o[...] = pop(acc)

def scan(x, y, o):
    acc = allocate(64)
    def body(count, k):
        push(y[pl.ds(k * 256, 256), :], 1, 0)
        accumulate(acc, x[:, pl.ds(k * 256, 256)], 1)
        return count + 1, None
    jax.lax.scan(body, 0, jnp.arange(K // 256))
    o[...] = pop(acc)

def turning(x, y, o):
    acc = allocate(64)
    def body(k):
        push(y[pl.ds(k * 256, 256), :], 1, 0)
        accumulate(acc, x[:, pl.ds(k * 256, 256)], 1)
        return k + 1
    jax.lax.while_loop(lambda k: k < K // 256, body, jnp.int32(0))
    o[...] = pop(acc)

def branching(x, y, o):
    acc = allocate(64)
    @pl.loop(0, K // 256)
    def _(k):
        rows = pl.ds(k * 256, 256)
        def even():
            push(y[rows, :], 0, 0)
            accumulate(acc, x[:, rows], 0)
        def odd():
            push(y[rows, :], 1, 0)
            accumulate(acc, x[:, rows], 1)
        jax.lax.cond(k % 2 == 0, even, odd)
    o[...] = pop(acc)

def over_the_grid(x, y, o):
    acc = allocate(64)
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)
    @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
    def _():
        o[...] = pop(acc)

def main(x, y):
    bodies = (fori, double_buffered, scan, turning, branching)
    results = [pl.pallas_call(body, out_shape=out(64, 256))(x, y) for body in bodies]
    results.append(pl.pallas_call(
        over_the_grid, out_shape=out(64, 256), grid=(K // 256,),
        in_specs=[pl.BlockSpec((64, 256), lambda k: (0, k)), pl.BlockSpec((256, 256), lambda k: (k, 0))],
        out_specs=pl.BlockSpec((64, 256), lambda k: (0, 0)))(x, y))
    return [one for result in results for one in (result, dot(x, y))]
"""


@pytest.mark.parametrize("api", APIS)
def test_loops_and_branches(tpu: Emulator, api: str) -> None:
    result = run(tpu, api, LOOPS, "main(bf16[64,1024], bf16[1024,256])")
    close(result)
    assert result.hazards == ()
    [arrays] = result.arrays
    sums = {got.tobytes() for got in arrays[::2]}
    assert len(sums) == 1


GRIDS = """
def tile(x, y, o):
    acc = allocate(128)
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)
    o[...] = pop(acc)

BLOCKS = dict(
    in_specs=[pl.BlockSpec((128, 256), lambda i, j: (i, 0)), pl.BlockSpec((256, 256), lambda i, j: (0, j))],
    out_specs=pl.BlockSpec((128, 256), lambda i, j: (i, j)),
)

def step(x, y, o):
    acc = allocate(128)
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)
    value = pop(acc)
    o[...] = jnp.where(pl.program_id(2) == 0, value, o[...] + value)

def piped(x, y, o):
    pltpu.emit_pipeline(
        step, grid=(2, 1, 2),
        in_specs=[pl.BlockSpec((128, 256), lambda i, j, k: (i, k)), pl.BlockSpec((256, 256), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((128, 256), lambda i, j, k: (i, j)),
    )(x, y, o)

def prefetched(which, x, y, o, scratch):
    acc = allocate(128)
    scratch[...] = x[...] * 1
    push(y[...], 0, 0)
    accumulate(acc, scratch[...], 0)
    o[...] = pop(acc)

def main(x, y, z, which):
    grid = pl.pallas_call(tile, out_shape=out(256, 512), grid=(2, 2), **BLOCKS)(x, y)
    pipe = pl.pallas_call(piped, out_shape=out(256, 256), in_specs=[ANY, ANY], out_specs=ANY)(
        jnp.concatenate([x, x], 1), z)
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(2,),
        in_specs=[pl.BlockSpec((128, 256), lambda i, which: (which[i], 0)), pl.BlockSpec((256, 256), lambda i, which: (0, 0))],
        out_specs=pl.BlockSpec((128, 256), lambda i, which: (i, 0)),
        scratch_shapes=[pltpu.VMEM((128, 256), BF16)],
    )
    turned = pl.pallas_call(prefetched, out_shape=out(256, 256), grid_spec=spec)(which * 0 + jnp.array([1, 0]), x, y)
    rows = jax.vmap(lambda x: pl.pallas_call(tile, out_shape=out(128, 256))(x, z[:256]))(x.reshape(2, 128, 256))
    return [
        grid, dot(x, y), pipe, dot(jnp.concatenate([x, x], 1), z),
        turned, jnp.concatenate([dot(x[128:], y[:, :256]), dot(x[:128], y[:, :256])]),
        rows.reshape(256, 256), dot(x, z[:256]),
    ]
"""


@pytest.mark.parametrize("api", APIS)
def test_grids_and_pipelines(tpu: Emulator, api: str) -> None:
    case = "main(bf16[256,256], bf16[256,512], bf16[512,256], i32[2])"
    result = run(tpu, api, GRIDS, case)
    close(result)
    assert result.hazards == ()


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
    close(result)
    assert result.hazards == ()


LAUNCHES = """
MESH = pltpu.create_tensorcore_mesh("core", num_cores=1)

@pl.kernel(out_type=out(64, 256), mesh=MESH, scratch_types=[pltpu.VMEM((64, 256), BF16), pltpu.VMEM((256, 256), BF16), pltpu.VMEM((64, 256), F32)])
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

called = pl.kernel(body, out(64, 256), mesh=MESH, scratch_types=dict(
    a=pltpu.VMEM((64, 256), BF16), b=pltpu.VMEM((256, 256), BF16), c=pltpu.VMEM((64, 256), F32)))

def mapped(x, y):
    def stateful(refs):
        x, y, o = refs
        @pl.core_map(MESH)
        def _():
            pl.run_scoped(
                functools.partial(decorated_body, x, y, o),
                pltpu.VMEM((64, 256), BF16), pltpu.VMEM((256, 256), BF16), pltpu.VMEM((64, 256), F32))
    _, _, result = pl.run_state(stateful)((x, y, jnp.zeros((64, 256), F32)))
    return result

def main(x, y):
    return [decorated(x, y), dot(x, y), called(x, y), dot(x, y), mapped(x, y), dot(x, y)]
"""


@pytest.mark.parametrize("api", APIS)
def test_launches_on_a_mesh(tpu: Emulator, api: str) -> None:
    result = run(tpu, api, LAUNCHES, "main(bf16[64,256], bf16[256,256])")
    close(result)
    assert result.hazards == ()


CORES = """
MESH = pltpu.create_tensorcore_mesh("core", num_cores=2)

def body(x, y, o, a, b, c):
    core = jax.lax.axis_index("core")
    rows = pl.ds(core * 64, 64)
    pltpu.sync_copy(x.at[rows, :], a)
    pltpu.sync_copy(y, b)
    acc = allocate(64)
    push(b[...], 0, 0)
    @pl.loop(0, 20)
    def _(i):
        accumulate(acc, a[...])
    accumulate(acc, a[...], 0)
    c[...] = pop(acc)
    pltpu.sync_copy(c, o.at[rows, :])

def main(x, y):
    kernel = pl.kernel(body, out(128, 256), mesh=MESH, scratch_types=[
        pltpu.VMEM((64, 256), BF16), pltpu.VMEM((256, 256), BF16), pltpu.VMEM((64, 256), F32)])
    return kernel(x, y)
"""


def test_each_core_has_an_mxu_of_its_own(tpu: Emulator) -> None:
    text = PRELUDE + ADDRESS + CORES.replace("accumulate(acc, a[...])", "pass", 1)
    result = tpu.run(text, "main(bf16[128,256], bf16[256,256])")
    assert result.failure == ""
    assert result.hazards == ()
