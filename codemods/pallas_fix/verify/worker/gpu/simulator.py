"""Runs GPU kernels on the CPU: those of Mosaic GPU and of Triton, each in jax's interpreter."""

from __future__ import annotations

import dataclasses
import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from jax.experimental import pallas as pl

from ..chips import Target, Unavailable
from ..internals.generations import generation
from ..replaced import replace
from ..where import innermost

_TMA_THREADS = 64
"""How many copies and products at once are told from each other when looking for races."""

Places = Iterator[tuple[str, int]]


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
        self._lock = threading.Lock()
        self._found: dict[tuple[str, str], dict[str, Any]] = {}
        self._failure: tuple[Exception, str] | None = None

    def install(self) -> None:
        """Put the stand-ins in the place of jax's functions. Raises Unavailable."""
        from jax.experimental.pallas import mosaic_gpu as plgpu

        known = generation()
        if not hasattr(plgpu, "InterpretGPUParams"):
            raise Unavailable("stage not available: GPU kernels run on the CPU from jax 0.11.1 on")
        from ..internals import gpu_barriers, gpu_failures, gpu_races, gpu_scopes, gpu_store
        from . import deadlock, gaps

        self._gaps = gaps
        self._reset = gpu_failures.reset
        self._threads = deadlock.Threads(self._root)
        gpu_store.install()
        for name, scope in gpu_scopes.stand_ins().items():
            replace(pl, name, scope)
        if known == "0.11.2":
            from ..internals import gpu_wgmma

            gpu_wgmma.install()
        gpu_failures.watch_failures(self._failed)
        gpu_barriers.watch_barriers(self._threads)
        if self._races:
            gpu_races.watch_gpu_races(self._race)
        self._install_launches(plgpu)

    def start(self) -> None:
        """Forget what has run."""
        self._found.clear()
        self._failure = None
        self._threads.reset()
        self._reset()

    def hazards(self) -> list[dict[str, Any]]:
        """What was wrong in the last run: {kind, severity, where, count, message}."""
        return list(self._found.values())

    def explain(self, error: Exception) -> Exception:
        """What to raise for an error of a run: Unavailable where jax's interpreter has a gap."""
        if self._threads.deadlock is not None:
            return self._threads.deadlock
        if self._failure is not None:
            return self._gaps.of_callback(*self._failure)
        return self._gaps.explain(error)

    def _install_launches(self, plgpu: Any) -> None:
        import jax._src.pallas.pallas_call as private

        from ..internals import gpu_pallas_call

        fields = {field.name for field in dataclasses.fields(plgpu.InterpretGPUParams)}
        going_on = {"on_race": "warn"} if "on_race" in fields else {}
        params = plgpu.InterpretGPUParams(
            detect_races=self._races, num_tma_threads_per_device=_TMA_THREADS, **going_on
        )
        plgpu.kernel = _interpreted(plgpu.kernel, params)
        pl.kernel = _interpreted(pl.kernel, params)
        launch = _interpreted(pl.pallas_call, True)  # Triton has no interpreter of its own
        if self._oracle or generation() == "0.11.0":
            launch = gpu_pallas_call.through_shim(launch, plgpu.kernel)
        pl.pallas_call = private.pallas_call = launch
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `core_map` is deprecated since jax 0.11
            pl.core_map = _interpreted(pl.core_map, params)

    def _failed(self, error: Exception, places: Places) -> None:
        with self._lock:
            if self._failure is None:
                self._failure = error, innermost(places, self._root)

    def _race(self, access: str, places: Places) -> None:
        message = (
            f"this {access} may come before or after another access of the same memory: wait for "
            "the copy or the product that touches it, commit what was written, or use a barrier"
        )
        where = innermost(places, self._root)
        one = {"kind": "race", "severity": "error", "where": where, "count": 0, "message": message}
        with self._lock:
            self._found.setdefault((where, access), one)["count"] += 1


def _interpreted(launch: Callable[..., Any], how: object) -> Callable[..., Any]:
    """A launch that is interpreted, whatever the user's code says."""

    @functools.wraps(launch)
    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return launch(*args, **kwargs | {"interpret": how})

    return stand_in
