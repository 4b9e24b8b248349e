"""One warm worker process, as the tool sees it: jobs go in, what happened comes out."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pallas_fix.targets import Target
from pallas_fix.verify.ends import End, Limits, finish
from pallas_fix.verify.environment import environment
from pallas_fix.verify.resources import resources
from pallas_fix.verify.verdict import Hazard, Resources, Stage, StageResult

START = Path(__file__).parent / "worker" / "start.py"

STARTUP = 300.0
"""Seconds that a worker may take to import jax (from a cold disk of a busy machine)."""

GRACE = 30.0
"""Seconds after the end of a job's time in which the worker must have said so."""


@dataclass(slots=True)
class Outcome:
    """What one job did: its stages, the functions it entered, the numbers it computed.

    `ran_on` names where kernels ran, `steps` counts what was accumulated there. `numbers` has one
    item for each set of inputs, as `worker/numbers.py` describes it, and `differences` one for
    each that was compared. `files` are what it looked at (`worker/opened.py`), `tools` the
    versions of what the worker works with. `lost` tells that no worker could do the job,
    `repeatable` that it came to its end and depends on nothing but the job and `files`.
    """

    stages: list[StageResult] = field(default_factory=list)
    entered: frozenset[str] = frozenset()
    ran_on: str = ""
    numbers: list[dict[str, Any]] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    hazards: tuple[Hazard, ...] = ()
    resources: tuple[Resources, ...] = ()
    steps: int = 0
    files: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()
    lost: bool = False
    repeatable: bool = False


class WorkerError(Exception):
    """The worker cannot be started or has gone: one sentence that says why."""


class Worker:
    """A warm process of one interpreter for one target; does one job at a time.

    It is started at once, and must be `ready` before its first job.
    """

    def __init__(self, python: Path, target: Target, folder: Path, device: bool) -> None:
        """Start it in `folder`, an empty one of its own. Raises WorkerError."""
        self.target = target
        self.tools: tuple[str, ...] = ()
        self._folder = folder
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self._log = folder / "log"
        self._python = python
        self._ready = False
        where = "device" if device else "cpu"
        command = [str(python), "-P", str(START), json.dumps(asdict(target)), where]
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    cwd=folder,
                    env=environment(target, folder, device),
                    start_new_session=True,
                )
        except OSError as error:
            raise WorkerError(f"cannot start {python}: {error.strerror or error}") from error

    def ready(self) -> None:
        """Wait until it has imported jax. Raises WorkerError."""
        event = self._event(time.monotonic() + STARTUP) or {"event": "broken"}
        if event["event"] == "broken":
            self.close()
            why = event.get("message") or self._said()
            raise WorkerError(f"cannot import jax with {self._python}: {why}")
        self.tools = tuple(event["tools"])
        self._ready = True

    def run(self, job: dict[str, Any], limits: Limits) -> Outcome:
        """Do one job. Raises WorkerError if the worker itself is lost."""
        outcome = Outcome(tools=self.tools)
        begun: str | None = None
        told = False
        line = json.dumps(job | {"limits": asdict(limits)}) + "\n"
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode())
        except (OSError, ValueError) as error:
            raise WorkerError(f"the worker for {self.target.name} is gone") from error
        deadline = time.monotonic() + limits.wall + GRACE
        while event := self._event(deadline):
            match event.pop("event"):
                case "begin":
                    begun = event["stage"]
                case "end":
                    begun = None
                    outcome.stages.append(StageResult(Stage(event.pop("stage")), **event))
                case "entered":
                    outcome.entered |= {event["name"]}
                case "ran":
                    outcome.ran_on, outcome.steps = event["on"], event["steps"]
                    outcome.hazards = tuple(Hazard(**hazard) for hazard in event["hazards"])
                case "numbers":
                    outcome.numbers.append(event)
                case "difference":
                    outcome.differences.append(event)
                case "files":
                    outcome.files = frozenset(event["paths"])
                    told = not event["more"]
                case "exit":
                    end = End(event["code"], event["reason"], event["output"])
                    finish(outcome.stages, begun, end, limits, job["root"])
                    outcome.resources = tuple(resources(end.output))
                    outcome.repeatable = told and not end.code and not end.reason
                    return outcome
        self.close()
        raise WorkerError(f"the worker for {self.target.name} is gone")

    def stop(self) -> None:
        """Tell the process to end its job and itself, and do not wait. May be called twice."""
        if self._process.stdin:
            self._process.stdin.close()

    def close(self) -> None:
        """End the process and all that it started. May be called twice."""
        self.stop()
        try:
            self._process.wait(5 if self._ready else 0)  # one that imports jax does not listen
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _event(self, deadline: float) -> dict[str, Any] | None:
        """The next thing that the worker says; None if it ends or says nothing in time."""
        assert self._process.stdout is not None
        while not self._lines:
            left = max(0.0, deadline - time.monotonic())
            try:
                ready, _, _ = select.select([self._process.stdout], [], [], left)
                data = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            except (OSError, ValueError):
                return None  # another thread has closed it
            if not data:
                return None
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines.extend(lines)
        event: dict[str, Any] = json.loads(self._lines.popleft())
        return event

    def _said(self) -> str:
        """The last line that the worker wrote to its log."""
        try:
            lines = self._log.read_text(errors="replace").split("\n")
        except OSError:
            lines = []  # another thread has removed it
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
