"""The ladder: climbs the stages with both versions of a file, on cases and targets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from pallas_fix.dtypes import DTYPES
from pallas_fix.targets import Target, find_target
from pallas_fix.verify import devices
from pallas_fix.verify.arguments import KEYS, Array, Group, Key, Literal, Value
from pallas_fix.verify.cases import Case
from pallas_fix.verify.ends import Limits
from pallas_fix.verify.process import Outcome, Worker, WorkerError
from pallas_fix.verify.shadow import Shadow, place
from pallas_fix.verify.verdict import CaseResult, Stage, StageResult

__all__ = ["Ladder", "Limits"]


class Ladder:
    """Runs cases in worker processes that stay warm between checks.

    Use it as a context manager: leaving it ends the workers and removes what they wrote. All
    work happens in a temporary folder; the user's files are only read.
    """

    def __init__(
        self,
        python: Path,
        *,
        jobs: int = 1,
        until: Stage = Stage.DEVICE,
        limits: Limits | None = None,
    ) -> None:
        """`python` is the interpreter of the user's project; `jobs` workers run at once."""
        self._python = python
        self._jobs = jobs
        self._until = until
        self._limits = limits or Limits()
        self._folder = Path(tempfile.mkdtemp(prefix="pallas-fix-")).resolve()
        self._lock = Lock()
        self._idle: dict[tuple[str, bool], list[Worker]] = {}
        self._workers: list[Worker] = []
        self._broken: dict[tuple[str, bool], str] = {}
        self._shadows: dict[Path, Shadow] = {}
        self._closed = False

    def __enter__(self) -> Ladder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and remove the temporary folder."""
        with self._lock:
            self._closed = True
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def check(
        self,
        root: Path,
        path: Path,
        before: str,
        after: str,
        cases: Sequence[Case],
        targets: Sequence[str],
    ) -> list[CaseResult]:
        """Climb with both texts of the file `path` of the project at `root`.

        Every case is tried for its own targets, or for `targets` if it names none, in order.
        Raises ValueError for an unknown target, or a path outside of `root`.
        """
        root = root.resolve()
        relative = path.resolve().relative_to(root)
        shadow = self._shadow(root, relative)
        texts = (before,) if before == after else (before, after)
        views = [(shadow.view(relative, text), text) for text in texts]
        pairs = [(case, find_target(name)) for case in cases for name in case.targets or targets]
        plans = [
            _Plan(_job(root, relative, view, text, case), target)
            for case, target in pairs
            for view, text in views
        ]
        outcomes = self._climb_all(plans)
        if before == after:
            outcomes = [outcome for outcome in outcomes for _ in range(2)]
        if shadow.full:
            _say_so_at_import(outcomes)
        return [
            _result(case, target, *outcomes[2 * index : 2 * index + 2])
            for index, (case, target) in enumerate(pairs)
        ]

    def _shadow(self, root: Path, relative: Path) -> Shadow:
        if root not in self._shadows:
            folder = self._folder / f"project{len(self._shadows)}"
            self._shadows[root] = Shadow(root, folder)
        self._shadows[root].refresh(relative)
        return self._shadows[root]

    def _climb_all(self, plans: Sequence[_Plan]) -> list[_Climbed]:
        pool = ThreadPoolExecutor(self._jobs)
        try:
            return list(pool.map(self._climb, plans))
        except BaseException:
            self.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _climb(self, plan: _Plan) -> _Climbed:
        last = Stage.COMPILE if self._until is Stage.DEVICE else self._until
        outcome, tools = self._run(plan, False, last)
        compiled = any(stage.stage is Stage.COMPILE and stage.ok for stage in outcome.stages)
        if self._until is Stage.DEVICE and compiled and devices.likely(plan.target.platform):
            ran, _ = self._run(plan, True, Stage.DEVICE)
            if ran.device and devices.matches(plan.target.kind, ran.device):
                outcome.device, outcome.digests = ran.device, ran.digests
                outcome.stages.append(replace(ran.stages[-1], stage=Stage.DEVICE))
        return _Climbed(outcome, tools)

    def _run(self, plan: _Plan, device: bool, last: Stage) -> tuple[Outcome, tuple[str, ...]]:
        """One job in a warm worker, with a second try where the worker itself is lost."""
        with tempfile.TemporaryDirectory(prefix="job-", dir=self._folder) as folder:
            job = plan.job | {"until": last, "device": device, "folder": folder}
            error: WorkerError | None = None
            for _ in range(2):
                try:
                    with self._worker(plan.target, device) as worker:
                        return worker.run(job, self._limits), worker.tools
                except WorkerError as problem:
                    error = problem
        return Outcome([StageResult(Stage.IMPORT, None, message=str(error))]), ()

    @contextmanager
    def _worker(self, target: Target, device: bool) -> Iterator[Worker]:
        """An idle worker, or a new one; it is kept for the next job unless it is lost."""
        key = (target.name, device)
        with self._lock:
            if self._closed:
                raise WorkerError("the ladder is closed")
            if key in self._broken:
                raise WorkerError(self._broken[key])
            idle = self._idle.setdefault(key, [])
            worker = idle.pop() if idle else None
        if worker is None:
            worker = self._start(target, device)
        yield worker
        with self._lock:
            idle.append(worker)

    def _start(self, target: Target, device: bool) -> Worker:
        folder = Path(tempfile.mkdtemp(prefix="worker-", dir=self._folder))
        try:
            worker = Worker(self._python, target, folder, device)
            with self._lock:
                self._workers.append(worker)
                closed = self._closed
            if closed:
                worker.close()
            worker.ready()
        except WorkerError as error:
            with self._lock:
                self._broken[target.name, device] = str(error)
            raise
        return worker


@dataclass(frozen=True, slots=True)
class _Plan:
    """One version of the file, one case, one target."""

    job: dict[str, Any]
    target: Target


@dataclass(frozen=True, slots=True)
class _Climbed:
    outcome: Outcome
    tools: tuple[str, ...]


def _say_so_at_import(outcomes: Sequence[_Climbed]) -> None:
    """Add to failed imports that the copy of the project is not complete."""
    for climbed in outcomes:
        first = climbed.outcome.stages[0]
        if first.ok is False:
            note = f"{first.message} (the project is too large: not all files were copied)"
            climbed.outcome.stages[0] = replace(first, message=note)


def _result(case: Case, target: Target, before: _Climbed, after: _Climbed) -> CaseResult:
    numbers = before.outcome.digests, after.outcome.digests
    ran = [
        any(stage.stage is Stage.DEVICE and stage.ok for stage in climbed.outcome.stages)
        for climbed in (before, after)
    ]
    comparable = all(ran) and any(numbers[0]) and any(numbers[1])
    return CaseResult(
        case=str(case),
        target=target.name,
        before=tuple(before.outcome.stages),
        after=tuple(after.outcome.stages),
        entered=after.outcome.entered,
        device=after.outcome.device,
        same=numbers[0] == numbers[1] if comparable else None,
        tools=after.tools or before.tools,
    )


def _job(root: Path, path: Path, view: Path, text: str, case: Case) -> dict[str, Any]:
    """A job as the worker reads it, but for its stages, its limits and its folder."""
    entry = Path(case.path) if case.path else path
    if entry != path:
        try:
            text = (view / entry).read_text(encoding="utf-8")
        except (OSError, ValueError):
            text = ""
    where = place(view, entry, text)
    return {
        "origin": str(root),
        "root": str(view),
        "file": str(path),
        "entry_file": str(entry),
        "module": where.module,
        "search": [str(view / folder) for folder in where.search],
        "entry": case.entry,
        "maker": case.maker,
        "args": [_encode(value) for value in case.args],
        "kwargs": [(name, _encode(value)) for name, value in case.kwargs],
    }


def _encode(value: Value) -> dict[str, Any]:
    match value:
        case Array(dtype=dtype, shape=shape, values=values):
            numbers = asdict(values) if values else None
            return {"array": DTYPES[dtype], "shape": shape, "values": numbers}
        case Key(kind=kind, shape=shape):
            return {"key": KEYS[kind], "shape": shape}
        case Literal():
            return {"literal": repr(value.value)}
        case Group(bracket=bracket, items=items, keys=keys):
            return {
                "group": bracket,
                "items": [_encode(item) for item in items],
                "keys": [repr(key.value) for key in keys],
            }
