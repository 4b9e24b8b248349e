"""The emulated MXU computes what jax's own dot computes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulated import Emulator, assert_close, emulator
from mxu_kernels import ADDRESS, APIS, GRIDS, LOOPS, REF, STRAIGHT, run

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def tpu() -> Iterator[Emulator]:
    with emulator() as one:
        yield one


@pytest.mark.parametrize("api", APIS)
def test_straight_kernels(tpu: Emulator, api: str) -> None:
    result = run(tpu, api, STRAIGHT, "main(bf16[64,256], bf16[256,256], bf16[256,256])")
    assert_close(result)
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
    assert_close(run(tpu, ADDRESS, text, f"main({dtype}[96,256], {dtype}[256,256])"))


@pytest.mark.parametrize("api", APIS)
def test_loops_and_branches(tpu: Emulator, api: str) -> None:
    result = run(tpu, api, LOOPS, "main(bf16[64,1024], bf16[1024,256])")
    assert_close(result)
    assert result.hazards == ()
    [arrays] = result.arrays
    sums = {got.tobytes() for got in arrays[::2]}
    assert len(sums) == 1


@pytest.mark.parametrize("api", APIS)
def test_grids_and_pipelines(tpu: Emulator, api: str) -> None:
    case = "main(bf16[256,256], bf16[256,512], bf16[512,256], i32[2])"
    result = run(tpu, api, GRIDS, case)
    assert_close(result)
    assert result.hazards == ()
