"""Kernels of the explicit MXU API for TPU7x: texts, for a worker runs them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from emulated import Emulator, Run

PRELUDE = '''
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32, BF16 = jnp.float32, jnp.bfloat16
Spec = pl.BlockSpec
ANY = Spec(memory_space=pl.ANY)
SCRATCH = [pltpu.VMEM((64, 256), BF16), pltpu.VMEM((256, 256), BF16), pltpu.VMEM((64, 256), F32)]
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

ADDRESS = """
def allocate(rows, mxu=0, above=0, dtype=F32):
    return above // 4, mxu, rows, dtype


def accumulate(acc, lhs, load=None):
    pltpu.matmul_acc_lhs(acc[0], lhs, acc[1], load_staged_rhs=load)


def pop(acc):
    return pltpu.matmul_pop(acc[0], (acc[2], 256), acc[3], acc[1])
"""
"""The API until jax 0.11.1. The emulator knows it under every jax."""

REF = """
def allocate(rows, mxu=0, above=0, dtype=F32):
    return jax.empty_ref(out(rows, 256, dtype=dtype), memory_space=pltpu.ACC(mxu))


def accumulate(acc, lhs, load=None):
    pltpu.matmul_acc_lhs(acc, lhs, load_staged_rhs=load)


pop = pltpu.matmul_pop
"""
"""The API since jax 0.11.2."""

APIS = [
    pytest.param(ADDRESS, id="address"),
    pytest.param(REF, id="ref", marks=pytest.mark.newest),
]


def run(tpu: Emulator, api: str, text: str, case: str) -> Run:
    """Run an entry of a text with the prelude before it. It must run through."""
    result = tpu.run(PRELUDE + api + dedent(text), case)
    assert result.failure == ""
    return result


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
        in_specs=[
            Spec((64, 256), lambda k: (0, k)),
            Spec((256, 256), lambda k: (k, 0)),
        ],
        out_specs=Spec((64, 256), lambda k: (0, 0)))(x, y))
    return [one for result in results for one in (result, dot(x, y))]
"""

GRIDS = """
def tile(x, y, o):
    acc = allocate(128)
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)
    o[...] = pop(acc)

BLOCKS = dict(
    in_specs=[Spec((128, 256), lambda i, j: (i, 0)), Spec((256, 256), lambda i, j: (0, j))],
    out_specs=Spec((128, 256), lambda i, j: (i, j)),
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
        in_specs=[
            Spec((128, 256), lambda i, j, k: (i, k)),
            Spec((256, 256), lambda i, j, k: (k, j)),
        ],
        out_specs=Spec((128, 256), lambda i, j, k: (i, j)),
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
        in_specs=[
            Spec((128, 256), lambda i, which: (which[i], 0)),
            Spec((256, 256), lambda i, which: (0, 0)),
        ],
        out_specs=Spec((128, 256), lambda i, which: (i, 0)),
        scratch_shapes=[pltpu.VMEM((128, 256), BF16)],
    )
    order = which * 0 + jnp.array([1, 0])
    turned = pl.pallas_call(prefetched, out_shape=out(256, 256), grid_spec=spec)(order, x, y)
    one = lambda x: pl.pallas_call(tile, out_shape=out(128, 256))(x, z[:256])
    rows = jax.vmap(one)(x.reshape(2, 128, 256))
    return [
        grid, dot(x, y), pipe, dot(jnp.concatenate([x, x], 1), z),
        turned, jnp.concatenate([dot(x[128:], y[:, :256]), dot(x[:128], y[:, :256])]),
        rows.reshape(256, 256), dot(x, z[:256]),
    ]
"""
