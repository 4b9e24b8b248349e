"""Finds the moment from which a kernel waits for ever, and names the barriers that it waits at.

Copies are done at once by the thread that starts them, so nobody but a thread arrives anywhere:
a kernel whose threads all wait has no future.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..failures import KernelError
from ..internals.gpu_barriers import Waiting
from ..where import innermost


class Deadlock(KernelError):
    """Every thread of a kernel waits for another one."""


class Threads:
    """The threads of the kernel that runs: a `gpu_barriers.Threads`.

    `root` is the folder of the user's project. `deadlock` is set once nothing moves any more, and
    then raised by each thread that waited.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget a kernel that has failed. There is one thread: that of the program."""
        self.deadlock: Deadlock | None = None
        self._running = 1
        self._waiting: list[Waiting] = []

    @contextmanager
    def fork(self, count: int) -> Iterator[None]:
        """A thread has started others, and waits until they have ended."""
        with self._lock:
            self._running += count - 1
        try:
            yield
        finally:
            with self._lock:
                self._running += 1

    @contextmanager
    def run(self) -> Iterator[None]:
        """A thread that was started runs."""
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                self._look()

    @contextmanager
    def wait(self, waiting: Waiting) -> Iterator[None]:
        """A thread waits at a barrier. Raises Deadlock."""
        with self._lock:
            if not self._waiting:
                self.deadlock = None  # that was another kernel
            self._waiting.append(waiting)
            self._look()
        try:
            yield
        finally:
            with self._lock:
                self._waiting.remove(waiting)
            if self.deadlock is not None:
                raise self.deadlock

    def _look(self) -> None:
        """See whether all wait; then let them go, to fail."""
        blocked = [waiting for waiting in self._waiting if waiting.blocked]
        if self.deadlock is None and blocked and len(blocked) == self._running:
            self.deadlock = self._told(blocked)
            for waiting in blocked:
                waiting.release()

    def _told(self, blocked: list[Waiting]) -> Deadlock:
        barriers: dict[str, str] = {}
        for waiting in blocked:
            came, wanted = waiting.arrivals
            where = innermost(waiting.places, self._root)
            at = f"at {where}" if where else "somewhere"
            barriers.setdefault(where, f"{at} ({came} of {wanted} arrivals)")
        message = f"every thread waits at a barrier for ever: {', '.join(barriers.values())}"
        return Deadlock(message, next(filter(None, barriers), ""))
