"""Launches, helpers and allocations on the emulated chip."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from emulated import Emulator, assert_close, emulator
from mxu_kernels import ADDRESS, APIS, PRELUDE, run

pytestmark = pytest.mark.compile


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


MANY = """
import numpy as np
from jax.sharding import PartitionSpec as P

def kernel(x, y, o):
    acc = allocate(x.shape[0])
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)
    o[...] = pop(acc)

def over(devices, x, y):
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    call = lambda x, y: pl.pallas_call(kernel, out_shape=out(x.shape[0], 256))(x, y)
    mapped = jax.shard_map(
        call, mesh=mesh, in_specs=(P("d"), P()), out_specs=P("d"), check_vma=False)
    return [mapped(x, y), dot(x, y)]

def one(x, y):
    return over(jax.devices()[:1], x, y)

def two(x, y):
    return over(jax.devices()[:2], x, y)
"""


def test_one_device_is_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    with emulator() as tpu:
        assert_close(run(tpu, ADDRESS, MANY, "one(bf16[128,256], bf16[256,256])"))
        failure = tpu.run(PRELUDE + ADDRESS + MANY, "two(bf16[128,256], bf16[256,256])").failure
    assert failure == (
        "stage not available: the kernel runs on 2 devices, and only one is emulated"
    )
