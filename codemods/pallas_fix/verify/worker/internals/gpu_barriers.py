"""Tells which threads of an interpreted Mosaic GPU kernel run, and at which barriers they wait.

`Barrier`, its `wait`, `phase`, `last_observed_phase_by_thread`, `cv`, `arrivals_count` and
`num_arrivals`, `Warp`: jax/_src/pallas/mosaic_gpu/interpret/shared_memory.py. A barrier lets a
thread go on once its phase is another than the last one that the thread has observed.
`_thread_map_callback`, which runs threads and waits for them, and `_run_jaxpr`, which is one:
jax/_src/pallas/mosaic/interpret/thread_map.py. All since jax 0.11.1.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from jax._src.pallas.mosaic.interpret import thread_map
from jax._src.pallas.mosaic_gpu.interpret import shared_memory

from .races import places

_Barrier: Any = shared_memory.Barrier


class Waiting:
    """A thread that waits at a barrier, or is about to."""

    def __init__(self, barrier: Any, thread: Any, source_info: Any) -> None:
        self._barrier = barrier
        self._observed = _observed(barrier, thread)
        self._source_info = source_info

    @property
    def places(self) -> Iterator[tuple[str, int]]:
        """File and line of the frames of the wait, innermost first."""
        return places(self._source_info)

    @property
    def arrivals(self) -> tuple[int, int]:
        """How many have arrived since the barrier was passed last, and how many have to."""
        return self._barrier.arrivals_count, self._barrier.num_arrivals

    @property
    def blocked(self) -> bool:
        """False once it may go on."""
        return bool(self._barrier.phase == self._observed)

    def release(self) -> None:
        """Let it go on, though nobody has arrived."""
        with self._barrier.cv:
            self._barrier.phase += 1
            self._barrier.cv.notify_all()


class Threads(Protocol):
    """What is told of the threads. Each context lasts for as long as what it is named after."""

    def fork(self, count: int) -> AbstractContextManager[None]:
        """A thread has started others, and waits until they have ended."""

    def run(self) -> AbstractContextManager[None]:
        """A thread that was started runs."""

    def wait(self, waiting: Waiting) -> AbstractContextManager[None]:
        """A thread waits at a barrier."""


def watch_barriers(threads: Threads) -> None:
    """Tell `threads` of all that happens on one device; of several devices nothing is told."""
    run, fork, wait = thread_map._run_jaxpr, thread_map._thread_map_callback, _Barrier.wait

    @functools.wraps(fork)
    def forked(jaxpr: Any, token: Any, device: Any, count: Any, *args: Any, **kwargs: Any) -> Any:
        with threads.fork(int(count)):
            return fork(jaxpr, token, device, count, *args, **kwargs)

    @functools.wraps(run)
    def ran(*args: Any) -> None:
        with threads.run():
            run(*args)

    @functools.wraps(wait)
    def waited(self: Any, thread: Any, logging_info: Any = None) -> None:
        if self.shared_memory.num_devices > 1:
            wait(self, thread, logging_info)
            return
        with threads.wait(Waiting(self, thread, getattr(logging_info, "source_info", None))):
            wait(self, thread, logging_info)

    thread_map._thread_map_callback, thread_map._run_jaxpr = forked, ran
    _Barrier.wait = waited


def _observed(barrier: Any, thread: Any) -> int:
    """The last phase that a thread has observed; a warp has what its warpgroup has."""
    known = barrier.last_observed_phase_by_thread
    if thread not in known and isinstance(thread, shared_memory.Warp):
        thread = thread.warpgroup()
    return int(known.get(thread, 0))
