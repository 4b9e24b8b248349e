"""GPU kernels on the CPU: their numbers against NumPy, and what their interpreter refuses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from emulated import Emulator, emulator
from kernels import WGMMA

pytestmark = [pytest.mark.compile, pytest.mark.newest]

STORED = WGMMA.replace(
    "        return acc[...]\n",
    "        acc[...] = plgpu.wgmma_accumulator_load(acc) * 2\n        return acc[...]\n",
)

TRITON = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def kernel(x_ref, o_ref):
    x = x_ref[...]
    x = jnp.exp(x - x.max(axis=1, keepdims=True))
    o_ref[...] = x / x.sum(axis=1, keepdims=True)


def softmax(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 16,),
        in_specs=[pl.BlockSpec((16, x.shape[1]), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((16, x.shape[1]), lambda i: (i, 0)),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def with_inputs(x):
    return x, softmax(x)
"""

DROPPED = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def double(x):
    return x, pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2,),
        in_specs=[pl.BlockSpec((128,), lambda i: (i,))],
        out_specs=pl.BlockSpec((128,), lambda i: (i,)),
        compiler_params=plgpu.CompilerParams(),
    )(x)
"""
"""`pl.pallas_call` with the params of Mosaic GPU, which jax has dropped in 0.11.2."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


@pytest.mark.parametrize(("text", "scale"), [(WGMMA, 1), (STORED, 2)], ids=["load", "store"])
def test_a_product_of_tensor_cores(worker: Emulator, text: str, scale: int) -> None:
    text += "\n\ndef with_inputs(a, b):\n    return a, b, matmul(a, b)\n"
    ran = worker.run(text, "with_inputs(f16[64,64], f16[64,128])", target="h100", seeds=2)
    assert ran.failure == ""
    assert ran.ran_on == "CPU (interpreted)"
    for a, b, product in ran.arrays:
        wanted = a.astype(np.float32) @ b.astype(np.float32) * scale
        np.testing.assert_allclose(product.astype(np.float32), wanted, rtol=2e-3, atol=2e-2)


def test_a_triton_kernel(worker: Emulator) -> None:
    ran = worker.run(TRITON, "with_inputs(f32[64,32])", target="a100")
    assert ran.failure == ""
    [[x, softmax]] = ran.arrays
    wanted = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(softmax, wanted / wanted.sum(1, keepdims=True), rtol=1e-5)


def test_what_jax_has_dropped_runs_for_a_file_before_a_repair(worker: Emulator) -> None:
    ran = worker.run(DROPPED, "double(f32[256])", target="h100", oracle=True)
    assert ran.failure == ""
    [[x, doubled]] = ran.arrays
    np.testing.assert_array_equal(doubled, x * 2)


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ("    plgpu.commit_smem()\n", "", "RACE DETECTED"),
        ("num_arrivals=2", "num_arrivals=1", "no threads observed phase 0"),
    ],
)
def test_what_no_compiler_sees(worker: Emulator, old: str, new: str, failure: str) -> None:
    text = WGMMA.replace(old, new)
    ran = worker.run(text, "matmul(f16[64,64], f16[64,128])", target="h100", races=True)
    assert failure in ran.failure


def test_an_output_that_is_not_written_is_seen(worker: Emulator) -> None:
    text = WGMMA.replace("    plgpu.copy_smem_to_gmem(o_smem, o_ref)\n", "")
    ran = worker.run(text, "matmul(f16[64,64], f16[64,128])", target="h100")
    assert ran.failure == ""
    assert np.isnan(ran.arrays[0][0]).all()
