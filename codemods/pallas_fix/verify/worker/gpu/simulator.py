"""Runs GPU kernels on the CPU: those of Mosaic GPU and of Triton, each in jax's interpreter."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from jax.experimental import pallas as pl

from ..chips import Target, Unavailable
from ..internals.generations import generation


class Simulator:
    """One GPU for one job, in a process of its own: `install` changes jax for good.

    With `oracle` the file is one before a repair: `pl.pallas_call` for Mosaic GPU, which newer jax
    refuses, goes through the shim that jax ships. With `races` unordered accesses of memory are
    looked for.
    """

    name = "CPU (interpreted)"

    def __init__(self, target: Target, root: str, *, oracle: bool, races: bool) -> None:
        self._root = root
        self._oracle = oracle
        self._races = races
        self._found: list[dict[str, Any]] = []

    def install(self) -> None:
        """Put the stand-ins in the place of jax's functions. Raises Unavailable."""
        from jax.experimental.pallas import mosaic_gpu as plgpu

        if generation() == "0.10.2" or not hasattr(plgpu, "InterpretGPUParams"):
            raise Unavailable("stage not available: GPU kernels run on the CPU from jax 0.11.1 on")
        from ..internals import gpu_pallas_call, gpu_store

        gpu_store.install()
        params = plgpu.InterpretGPUParams(detect_races=self._races)
        import jax._src.pallas.pallas_call as private

        plgpu.kernel = _interpreted(plgpu.kernel, params)
        pl.kernel = _interpreted(pl.kernel, params)
        launch = _interpreted(pl.pallas_call, True)  # Triton has no interpreter of its own
        if self._oracle or generation() == "0.11.0":
            launch = gpu_pallas_call.through_shim(launch, plgpu.kernel)
        pl.pallas_call = private.pallas_call = launch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `core_map` is deprecated since jax 0.11
            pl.core_map = _interpreted(pl.core_map, params)

    def start(self) -> None:
        """Forget what has run."""
        self._found.clear()

    def hazards(self) -> list[dict[str, Any]]:
        """What was wrong in the last run: {kind, severity, where, count, message}."""
        return list(self._found)


def _interpreted(launch: Callable[..., Any], how: object) -> Callable[..., Any]:
    """A launch that is interpreted, whatever the user's code says."""

    @functools.wraps(launch)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return launch(*args, **kwargs | {"interpret": how})

    return stand_in
