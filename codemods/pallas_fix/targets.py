"""The chips that a kernel can be verified for, and what the rules must know of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Gpu:
    """What the XLA compiler asks about a GPU that is not there.

    Sizes in bytes, `clock` in GHz, `bandwidth` in bytes per second, as in the device files of
    XLA (xla/backends/gpu/target_config/specs/{h100_sxm,b200,a100_sxm_80}.txtpb).
    """

    major: int
    minor: int
    accelerated: bool
    memory: int
    bandwidth: int
    l2_cache: int
    shared_per_core: int
    shared_per_block: int
    clock: float


@dataclass(frozen=True, slots=True)
class Target:
    """One chip.

    `kind` is jax's `Device.device_kind`, `cores` what jax reports as its cores
    (`num_cores` of a TPU device, `core_count` of a GPU), both as jax/_src/tpu_info.py and
    jax/_src/mesh.py read them. `topology` is a name that libtpu knows, or the shape of one GPU.

    `accumulators`: has addressable MXU accumulators, what `pltpu.ACC` allocates
    (`num_accumulators` in jax/_src/tpu_info.py of 0.12: 0 before TPU7x). `wgmma` and `tcgen05`:
    has these matrix units of Hopper and of Blackwell (PTX ISA, "Target ISA Notes": sm_90a and
    sm_100a).
    """

    name: str
    kind: str
    platform: Literal["tpu", "gpu"]
    cores: int
    topology: str
    accumulators: bool = False
    wgmma: bool = False
    tcgen05: bool = False
    gpu: Gpu | None = None

    @property
    def compiler(self) -> str:
        """The program that makes machine code for this chip, as people call it."""
        return "libtpu" if self.platform == "tpu" else "ptxas"

    @property
    def extra(self) -> str:
        """The extra of pallas-fix that brings the compiler."""
        return self.platform


_ALL = (
    Target("v4", "TPU v4", "tpu", 1, "v4:2x2x1"),
    Target("v5e", "TPU v5 lite", "tpu", 1, "v5e:2x2"),
    Target("v5p", "TPU v5", "tpu", 2, "v5p:2x2x1"),
    Target("v6e", "TPU v6 lite", "tpu", 1, "v6e:2x2"),
    Target("tpu7x", "TPU7x", "tpu", 1, "tpu7x:2x2x1", accumulators=True),
    Target(
        "h100",
        "NVIDIA H100 80GB HBM3",
        "gpu",
        132,
        "1x1x1",
        wgmma=True,
        gpu=Gpu(9, 0, True, 84942979072, 3352320000000, 52428800, 233472, 232448, 1.98),
    ),
    Target(
        "b200",
        "NVIDIA B200",
        "gpu",
        148,
        "1x1x1",
        tcgen05=True,
        gpu=Gpu(10, 0, True, 191514411008, 7672320000000, 132644864, 233472, 232448, 1.965),
    ),
    Target(
        "a100",
        "NVIDIA A100-SXM4-80GB",
        "gpu",
        108,
        "1x1x1",
        gpu=Gpu(8, 0, False, 85100068864, 2039040000000, 41943040, 167936, 166912, 1.41),
    ),
)

TARGETS = {target.name: target for target in _ALL}
"""The known targets by name, TPUs first, older chips first."""


def find_target(name: str) -> Target:
    """The target of that name, in either case. Raises ValueError that lists the known names."""
    try:
        return TARGETS[name.lower()]
    except KeyError:
        raise ValueError(f"unknown target {name!r} (known: {', '.join(TARGETS)})") from None


_WORDS: tuple[tuple[str, Iterable[str]], ...] = (
    ("tpu7x", ("matmul_push_rhs", "matmul_acc_lhs", "matmul_pop", "pltpu.ACC")),
    ("b200", ("tcgen05",)),
    ("h100", ("wgmma", "mosaic_gpu", "plgpu.")),
    ("a100", ("pallas.triton", "pallas import triton")),
    ("v6e", ("pallas.tpu", "pallas import tpu", "pltpu.")),
)


def default_targets(text: str) -> tuple[str, ...]:
    """The targets for a file whose user named none, by the words in its text.

    Explicit MXU words ask for `tpu7x`, the one chip with accumulators. `tcgen05` asks for `b200`
    and other Mosaic GPU code for `h100`; the Triton path for `a100`, whose instructions newer
    GPUs keep. Other TPU code, and code that names no hardware, is asked of `v6e`, a chip that
    every supported jax and libtpu knows. A file with both TPU and GPU code gets one of each.
    Empty where the text never says pallas.
    """
    if "pallas" not in text:
        return ()
    named = [name for name, words in _WORDS if any(word in text for word in words)]
    tpu = next((name for name in named if TARGETS[name].platform == "tpu"), None)
    gpu = next((name for name in named if TARGETS[name].platform == "gpu"), None)
    return tuple(name for name in (tpu, gpu) if name) or ("v6e",)
