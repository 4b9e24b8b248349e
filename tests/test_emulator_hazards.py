"""What the emulator says of kernels that are wrong, and of what it cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import numpy as np
import pytest

from emulated import Emulator, emulator, line_of
from mxu_kernels import ADDRESS, PRELUDE, run

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def tpu() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


HAZARDS = """
def twice(x, y, o):
    push(y[...], 0, 0)  # first push
    push(y[...], 0, 0)  # second push
    acc = allocate(64)
    accumulate(acc, x[...], 0)
    o[...] = pop(acc)

def not_popped(x, y, o):
    acc = allocate(64)
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)  # never popped
    o[...] = jnp.zeros((64, 256), F32)

def too_early(x, y, o):
    acc = allocate(64)
    early = pop(acc)  # popped early
    push(y[...], 0, 0)
    accumulate(acc, x[...], 0)
    o[...] = early + pop(acc)

def other_mxu(x, y, o):
    acc = allocate(64, mxu=1)
    push(y[...], 0, 0)  # push to another MXU
    accumulate(acc, x[...], 0)  # load of an empty register
    o[...] = pop(acc)

def nothing_loaded(x, y, o):
    acc = allocate(64)
    accumulate(acc, x[...])  # nothing loaded
    o[...] = pop(acc)

def in_a_helper(x, y, o):
    push_it = lambda: push(y[...], 0, 0)  # push in a lambda
    acc = allocate(64)
    @pl.loop(0, 3)
    def _(i):
        push_it()
        @pl.when(i > 0)
        def _():
            accumulate(acc, x[...], 0)
    o[...] = pop(acc)

def call(body):
    return lambda x, y: pl.pallas_call(body, out_shape=out(64, 256))(x, y)

twice, not_popped, too_early, other_mxu, nothing_loaded, in_a_helper = map(
    call, (twice, not_popped, too_early, other_mxu, nothing_loaded, in_a_helper))
"""


@pytest.mark.parametrize(
    ("kernel", "kinds", "finite"),
    [
        ("twice", ["push-occupied # second push"], True),
        ("not_popped", ["acc-at-exit accumulate"], True),
        ("too_early", ["pop-empty pop"], True),
        ("other_mxu", ["load-empty accumulate", "staged-at-exit # push to another MXU"], False),
        ("nothing_loaded", ["no-weights accumulate"], False),
        ("in_a_helper", ["push-occupied # push in a lambda"], True),
    ],
)
def test_hazards_name_the_users_line(
    tpu: Emulator, kernel: str, kinds: list[str], finite: bool
) -> None:
    text = PRELUDE + ADDRESS + HAZARDS
    result = run(tpu, ADDRESS, HAZARDS, f"{kernel}(bf16[64,256], bf16[256,256])")
    parts = {
        "accumulate": "pltpu.matmul_acc_lhs(acc[0]",
        "pop": "return pltpu.matmul_pop(acc[0]",
    }
    wanted = []
    for one in kinds:
        kind, _, place = one.partition(" ")
        wanted.append(f"{kind} {line_of(text, parts.get(place, place))}")
    assert result.kinds == wanted
    [[array]] = result.arrays
    assert np.isfinite(array).all() == finite


def test_a_kernel_finds_the_mxu_empty(tpu: Emulator) -> None:
    text = """
    def leaves(x, y, o):
        push(y[...], 0, 0)  # left behind
        o[...] = x[...] * 1.0

    def finds(x, y, o):
        accumulate(0, x[...], 0)  # nothing there

    def leave(x, y):
        once = pl.pallas_call(leaves, out_shape=out(64, 256), grid=(1, 1))(x, y)
        return pl.pallas_call(leaves, out_shape=out(64, 256))(once, y)
    """
    result = run(tpu, "", text, "leave(f32[64,256], bf16[256,256])")
    [hazard] = result.hazards
    assert (hazard.kind, hazard.count) == ("staged-at-exit", 2)
    assert hazard.where == line_of(PRELUDE + dedent(text), "# left behind")


def test_hazards_in_other_files_name_them(tpu: Emulator) -> None:
    files = {
        "helpers/__init__.py": "",
        "helpers/mxu.py": "from jax.experimental.pallas import tpu as pltpu\n"
        "from jax.experimental.pallas.tpu import matmul_push_rhs as push\n\n"
        "def stage(y):\n    push(y, 0, 0)\n",
    }
    text = """
    from helpers.mxu import stage

    def kernel(y, o):
        stage(y[...])
        o[...] = y[...]

    def main(y):
        return pl.pallas_call(kernel, out_shape=out(256, 256))(y)
    """
    result = tpu.run(PRELUDE + dedent(text), "main(f32[256,256])", files=files)
    assert result.failure == ""
    assert result.kinds == ["staged-at-exit helpers/mxu.py:5"]


def test_what_the_chip_does_not_have_is_a_hazard(tpu: Emulator) -> None:
    text = """
    def kernel(x, y, o):
        push(y[...], 9, 0)  # no such register
        push(y[...], 0, 7)  # no such MXU
        push(y[...], 0, 0)
        accumulate(allocate(64, above=1000), x[...], 0)  # no such rows
        o[...] = x[...]

    def main(x, y):
        return pl.pallas_call(kernel, out_shape=out(64, 256))(x, y)
    """
    result = run(tpu, ADDRESS, text, "main(f32[64,256], f32[256,256])")
    assert [hazard.kind for hazard in result.hazards] == [
        "bad-index",
        "bad-index",
        "acc-out-of-range",
    ]


def test_races_have_a_line(tpu: Emulator) -> None:
    text = """
    def kernel(x, o, tmp, semaphore):
        copy = pltpu.make_async_copy(x, tmp, semaphore)
        copy.start()  # races with the read
        o[...] = tmp[...]
        copy.wait()

    def main(x):
        scratch = [pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA]
        call = pl.pallas_call(
            kernel, out_shape=out(8, 128), in_specs=[ANY], scratch_shapes=scratch)
        return call(x)
    """
    text = PRELUDE + dedent(text)
    result = tpu.run(text, "main(f32[8,128])", races=True)
    assert result.failure == ""
    assert result.kinds == [f"race {line_of(text, '# races with the read')}"]
    [[array]] = result.arrays
    assert np.isnan(array).all()
