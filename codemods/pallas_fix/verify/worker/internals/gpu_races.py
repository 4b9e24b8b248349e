"""Reports the races that the Mosaic GPU interpreter finds, since jax 0.11.1.

Its state is `GPURaceDetectionState` of jax/_src/pallas/mosaic_gpu/interpret/race_detection_state.py
since jax 0.11.2, and that of the TPU interpreter before. Both modules print what they find with
`logging` and `logger`. Numbers of registers are used again by the next block of the grid, whose
clocks begin anew (`reset_per_cluster_state` of shared_memory.py there), but no other thread has
them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from jax._src.pallas.mosaic.interpret import race_detection_state as common
from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks
from jax.experimental.pallas import mosaic_gpu as plgpu

from .races import Report, watch_races


def watch_gpu_races(report: Report) -> None:
    """Call `report` for each access that races with an earlier one; nothing is printed."""
    state: Any = getattr(gpu_callbacks, "GPURaceDetectionState", common.RaceDetectionState)
    for name in (state.__module__, common.__name__):
        module: Any = sys.modules[name]
        module.logging = module.logger = SimpleNamespace(warning=lambda *text: None)
    for name in ("check_read", "check_write"):
        setattr(state, name, _of_shared_memory(getattr(state, name)))
    watch_races(report, state)


def _of_shared_memory(check: Callable[..., None]) -> Callable[..., None]:
    """A check that passes over registers."""

    @functools.wraps(check)
    def checked(self: Any, thread: Any, clock: Any, key: Any, *args: Any, **kwargs: Any) -> None:
        if key.memory_space_id != _REGISTERS:
            check(self, thread, clock, key, *args, **kwargs)

    return checked


_REGISTERS = list(plgpu.MemorySpace).index(plgpu.MemorySpace.REGS)
"""How the keys of buffers name this memory (`IDX_BY_GPU_MEMORY_SPACE` of shared_memory.py)."""
