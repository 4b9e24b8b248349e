"""What counts as the allocation of an accumulator."""

from __future__ import annotations

import ast

import pytest
from jax.experimental import pallas
from jax.experimental.pallas import tpu

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation, is_invented
from pallas_fix.facts.names import canonical

HEAD = """\
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax._src.pallas.mosaic import core as tpu_core

M = N = 256
SPACE = pltpu.ACC(1)
MESH = object()
"""


@pytest.mark.parametrize(
    ("text", "index", "dtype"),
    [
        ("pltpu.ACC(0)((M, N), jnp.float32)", "0", "jnp.float32"),
        ("pltpu.ACC((M, N), jnp.float32)", None, "jnp.float32"),
        ("pltpu.ACC(shape=(M, N), dtype=jnp.float32)", None, "jnp.float32"),
        ("pltpu.ACC(1, (M, N), jnp.float32)", "1", "jnp.float32"),
        ("pltpu.ACC((M, N), jnp.float32, mxu_id=1)", "1", "jnp.float32"),
        ("pltpu.ACC((M, N))", None, None),
        ("pltpu.ACC()((M, N), jnp.float32)", None, "jnp.float32"),
        ("pltpu.ACC(mxu_index=1)((M, N), jnp.float32)", "1", "jnp.float32"),
        ("SPACE((M, N), jnp.float32)", "1", "jnp.float32"),
        ("(pltpu.ACC(0) @ MESH)((M, N), jnp.float32)", "0", "jnp.float32"),
        ("tpu_core.AccMemorySpace(0)((M, N), jnp.float32)", "0", "jnp.float32"),
        ("pltpu.MemorySpace.ACCUMULATOR((M, N), jnp.float32)", None, "jnp.float32"),
        ("pltpu.TPUMemorySpace.ACC((M, N), jnp.float32)", None, "jnp.float32"),
        ("pltpu.AccMemorySpace.ACCUMULATOR((M, N), jnp.float32)", None, "jnp.float32"),
        ("pltpu.MXU_ACC((M, N), jnp.float32)", None, "jnp.float32"),
        ("pltpu.Accumulator(0)((M, N), jnp.float32)", "0", "jnp.float32"),
    ],
)
def test_an_accumulator_however_it_is_written(
    text: str, index: str | None, dtype: str | None
) -> None:
    found = parse(text)

    assert found is not None
    assert found.space == "pltpu.ACC"
    assert found.shape is not None
    assert ast.unparse(found.shape) == "(M, N)"
    assert (found.index and ast.unparse(found.index)) == index
    assert (found.dtype and ast.unparse(found.dtype)) == dtype


@pytest.mark.parametrize(
    "text",
    [
        "pltpu.ACC(0)",
        "pltpu.ACC(M)",
        "pltpu.AccessAssumption(1, 2)",
        "MESH.ACC((M, N), jnp.float32)",
    ],
)
def test_no_allocation(text: str) -> None:
    assert parse(text) is None


def test_no_name_of_jax_counts_as_invented() -> None:
    for module in (pallas, tpu, pallas.MemorySpace, tpu.MemorySpace):
        path = getattr(module, "__name__", "")
        base = f"jax.experimental.pallas.{path.rpartition('.')[2]}".replace(
            "pallas.pallas", "pallas"
        )
        names = [canonical(f"{base}.{name}") for name in dir(module)]
        assert [name for name in names if is_invented(name)] == []


def parse(text: str) -> Allocation | None:
    module = Facts.parse(f"{HEAD}{text}\n", "module.py")
    last = module.tree.body[-1]
    assert isinstance(last, ast.Expr)
    return module.allocations.parse(last.value)
