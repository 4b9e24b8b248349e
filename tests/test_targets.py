"""The chips, and which of them a file is verified for."""

from __future__ import annotations

import pytest

from kernels import MXU, WGMMA
from pallas_fix.targets import TARGETS, default_targets, find_target


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        (MXU, ("tpu7x",)),
        (WGMMA, ("h100",)),
        ("from jax.experimental.pallas import mosaic_gpu as g\ng.tcgen05_mma(a)", ("b200",)),
        ("from jax.experimental.pallas import triton as plt", ("a100",)),
        ("from jax.experimental.pallas import tpu as pltpu", ("v6e",)),
        ("from jax.experimental import pallas as pl", ("v6e",)),
        (
            "import jax.experimental.pallas.tpu\nimport jax.experimental.pallas.mosaic_gpu",
            ("v6e", "h100"),
        ),
        ("import jax", ()),
    ],
)
def test_default_targets(text: str, targets: tuple[str, ...]) -> None:
    assert default_targets(text) == targets


def test_only_tpu7x_has_accumulators_and_only_hopper_has_wgmma() -> None:
    assert [name for name, target in TARGETS.items() if target.accumulators] == ["tpu7x"]
    assert [name for name, target in TARGETS.items() if target.wgmma] == ["h100"]


def test_targets_are_found_in_either_case() -> None:
    assert find_target("H100") is TARGETS["h100"]
    with pytest.raises(ValueError, match=r"unknown target 'h1' \(known: v4, "):
        find_target("h1")
