"""A blocked matmul that runs on jax 0.4.35 and on the newest."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from packaging.version import Version

_JAX = Version(jax.__version__)
_PARAMS_RENAMED = _JAX >= Version("0.7.0")


def _compiler_params(*semantics: str, vmem: int | None = None):
    if _PARAMS_RENAMED:
        return pltpu.CompilerParams(dimension_semantics=semantics, vmem_limit_bytes=vmem)
    return pltpu.TPUCompilerParams(dimension_semantics=semantics, vmem_limit_bytes=vmem)


def _matmul_kernel(x_ref, y_ref, o_ref, acc_ref, *, steps):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == steps - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


@functools.partial(jax.jit, static_argnames=("bm", "bn", "bk"))
def matmul(x, y, *, bm=128, bn=128, bk=128):
    m, k = x.shape
    n = y.shape[1]
    return pl.pallas_call(
        functools.partial(_matmul_kernel, steps=k // bk),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // bm, n // bn, k // bk),
        in_specs=[
            pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)),
            pl.BlockSpec((bk, bn), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=_compiler_params("parallel", "parallel", "arbitrary"),
    )(x, y)
