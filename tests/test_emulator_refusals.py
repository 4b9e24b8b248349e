"""What jax refuses, and what its interpreter cannot do, when kernels run emulated."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from textwrap import dedent

import pytest

from emulated import Emulator, emulator
from mxu_kernels import ADDRESS, PRELUDE, REF

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def tpu() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


def refused(
    tpu: Emulator, api: str, body: str, case: str = "main(f32[64,256], f32[256,256])"
) -> str:
    """`Type: message` with which a kernel fails that has this body."""
    lines = "\n".join(f"    {line}" for line in dedent(body).strip().split("\n"))
    text = f"""
def kernel(x, y, o):
{lines}

def main(x, y):
    return pl.pallas_call(kernel, out_shape=out(64, 256), grid=(1,))(x, y)
"""
    return tpu.run(PRELUDE + api + text, case).failure


@pytest.mark.newest
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "acc = allocate(64)\naccumulate(acc, x[0:32, :], 0)",
            "ValueError: The shape of the accumulator (64, 256) does not match the shape of the "
            "lhs (32, 256).",
        ),
        (
            "accumulate(allocate(64), x[...], True)",
            "TypeError: load_staged_rhs must be an integer or None.",
        ),
        (
            "accumulate(allocate(64), x[...], 0.0)",
            "TypeError: load_staged_rhs must be an integer or None.",
        ),
        (
            "accumulate(allocate(64).at[0:32], x[0:32, :], 0)",
            "NotImplementedError: Transforms not supported for matmul_acc_lhs.",
        ),
        (
            "o[0:8] = pop(allocate(64).at[pl.ds(pl.program_id(0) * 8, 8)])",
            "NotImplementedError: Transforms not supported for matmul_pop.",
        ),
        (
            "o[...] = allocate(64)[...]",
            "ValueError: Loading from an accumulator is not supported. Use `matmul_pop` instead, "
            "which will additionally zero out the accumulator.",
        ),
        (
            "allocate(64)[...] = x[...]",
            "ValueError: Storing into an accumulator is not supported.",
        ),
        (
            "first, second = allocate(640), allocate(640)",
            "ValueError: Accumulator space overflow while attempting to allocate ref of shape "
            "(640, 256) at offset 80 on MXU 0. The shape requires 80 entries, but only 48 are "
            "available.",
        ),
        (
            "accumulate(o, x[...], 0)",
            "ValueError: Expected an accumulator ref, got Ref<default>{float32[64,256]}",
        ),
        (
            "allocate(64, mxu=7)",
            "ValueError: mxu_id must be in [0, 2), got mxu_id=7",
        ),
        (
            "allocate(64, dtype=BF16)",
            "ValueError: Acc ref dtype must be float32 or int32, got bfloat16",
        ),
    ],
)
def test_what_jax_refuses_is_refused_in_its_words(tpu: Emulator, body: str, message: str) -> None:
    assert refused(tpu, REF, body) == message


@pytest.mark.newest
def test_accumulators_among_the_scratch_are_refused_as_by_jax(tpu: Emulator) -> None:
    text = """
    def kernel(x, o, acc):
        o[...] = x[...]

    def main(x):
        scratch = [pltpu.ACC(0)((64, 256), F32)]
        return pl.pallas_call(kernel, out_shape=out(64, 256), scratch_shapes=scratch)(x)

    def on_mesh(x):
        mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
        scratch = [pltpu.ACC(0)((64, 256), F32)]
        return pl.kernel(kernel, out(64, 256), mesh=mesh, scratch_types=scratch)(x)
    """
    text = PRELUDE + dedent(text)
    for entry in ("main", "on_mesh"):
        failure = tpu.run(text, f"{entry}(f32[64,256])").failure
        assert failure == "NotImplementedError: Invalid memory space: AccMemorySpace(mxu_id=0)"


def test_addresses_are_checked(tpu: Emulator) -> None:
    bodies = {
        "accumulate(allocate(64), x[...], True)": "load_staged_rhs must be an integer or None.",
        "push(y[...], 0, pl.program_id(0))": "mxu_index was not hashable",
        "o[...] = pop(allocate(64, dtype=BF16))": (
            "Only float32 and int32 accumulators are supported, got bfloat16"
        ),
    }
    for body, message in bodies.items():
        assert message in refused(tpu, ADDRESS, body)


def test_what_the_interpreter_cannot_do_is_no_fault_of_the_kernel(tpu: Emulator) -> None:
    gap = "stage not available: jax's interpreter cannot run this kernel: "
    bodies = {
        "o[...] = x.reshape(16384).reshape(64, 256)[...]": gap,
        "o[...] = pltpu.load(x, mask=x[...] > 0)": f"{gap}NotImplementedError: masked load_p",
        "o[...] = x[pl.ds(pl.program_id(0) + 8, 64), :]": "KernelError: IndexError: Out-of-bounds",
        "raise KeyError('mine')": "KeyError: 'mine'",
    }
    for body, beginning in bodies.items():
        assert refused(tpu, "", body).startswith(beginning)


def test_an_unknown_jax_gives_no_numbers() -> None:
    code = """
import jax
from pallas_fix.verify.worker.internals.generations import generation
print(generation())
jax.__version_info__, jax.__version__ = (0, 13, 0), "0.13.0"
generation()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("0.1")
    assert done.stderr.rstrip().endswith(
        "Unavailable: stage not available: kernels run on the CPU under jax 0.10.2 to 0.12, "
        "and this is jax 0.13.0"
    )
