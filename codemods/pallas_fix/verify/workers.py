"""The warm worker processes of a run: started when first needed, reused, ended together."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from pallas_fix.targets import Target
from pallas_fix.verify.ends import Limits
from pallas_fix.verify.process import Outcome, Worker, WorkerError
from pallas_fix.verify.verdict import Stage, StageResult

Key = tuple[Path, str, bool]
"""Interpreter, target, and whether it may use a device."""


class Workers:
    """Does jobs in processes that stay warm, one process at least for each `Key`."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        """They live below `folder`."""
        self._folder = folder
        self._limits = limits
        self._lock = Lock()
        self._idle: dict[Key, list[Worker]] = {}
        self._all: list[Worker] = []
        self._broken: dict[Key, str] = {}
        self._closed = False

    def close(self) -> None:
        """End them all. May be called twice, and from any thread."""
        with self._lock:
            self._closed = True
            workers, self._all = self._all, []
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.close()

    def run(self, python: Path, target: Target, device: bool, job: dict[str, Any]) -> Outcome:
        """Do one job, with a second try where the worker itself is lost."""
        with tempfile.TemporaryDirectory(
            prefix="job-", dir=self._folder, ignore_cleanup_errors=True
        ) as folder:
            error: WorkerError | None = None
            for _ in range(2):
                try:
                    with self._worker((python, target.name, device), target) as worker:
                        return worker.run(job | {"folder": folder}, self._limits)
                except WorkerError as problem:
                    error = problem
        return Outcome([StageResult(Stage.IMPORT, None, message=str(error))], lost=True)

    @contextmanager
    def _worker(self, key: Key, target: Target) -> Iterator[Worker]:
        """An idle worker, or a new one; it is kept for the next job unless it is lost."""
        with self._lock:
            if self._closed:
                raise WorkerError("the ladder is closed")
            if key in self._broken:
                raise WorkerError(self._broken[key])
            idle = self._idle.setdefault(key, [])
            worker = idle.pop() if idle else None
        if worker is None:
            worker = self._start(key, target)
        yield worker
        with self._lock:
            idle.append(worker)

    def _start(self, key: Key, target: Target) -> Worker:
        python, _, device = key
        folder = Path(tempfile.mkdtemp(prefix="worker-", dir=self._folder))
        try:
            worker = Worker(python, target, folder, device)
            with self._lock:
                self._all.append(worker)
                closed = self._closed
            if closed:
                worker.close()
            worker.ready()
        except WorkerError as error:
            with self._lock:
                self._broken[key] = str(error)
            raise
        return worker
