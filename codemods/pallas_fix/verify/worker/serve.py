"""The warm process: imports jax once, then forks a child for every job.

It reads jobs as JSON lines on its standard input and answers with JSON lines on what was its
standard output. It watches over the child: forwards its reports, drains what it prints, and
ends it when its time is over, when it prints too much, or when the input closes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from . import sandbox

Job = dict[str, Any]

STUCK = 20.0
"""Seconds without any processor time after which a run is taken for a deadlock."""

TAIL = 1 << 16
"""Bytes of the child's last output that are kept for the report."""


def serve(target_text: str) -> None:
    """Answer jobs until the input ends. `target_text` is the target as JSON."""
    target = json.loads(target_text)
    answers = os.dup(1)
    os.dup2(2, 1)

    def send(**event: object) -> None:
        os.write(answers, json.dumps(event).encode() + b"\n")

    try:
        from . import chips, job

        chips.preload(target)
    except BaseException as error:
        send(event="broken", message=f"{type(error).__name__}: {error}")
        return
    send(event="ready", tools=chips.tools(target))
    warnings.filterwarnings("ignore", message=".*use of fork.*", category=DeprecationWarning)
    jobs = _Lines(0)
    while (line := jobs.next()) is not None:
        task = json.loads(line)
        child = _Child(task, lambda report, task=task: job.run(task, target, report), answers)
        send(event="exit", **child.watch(jobs))
        if jobs.ended:
            return


class _Lines:
    """Whole lines from a file descriptor, and whether it has ended."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.ended = False
        self._rest = b""

    def read(self) -> list[bytes]:
        """The lines that one read completes; waits if there is nothing to read."""
        data = os.read(self.descriptor, 1 << 16)
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def next(self) -> bytes | None:
        """The next line; None at the end. For one line at a time only."""
        lines: list[bytes] = []
        while not lines and not self.ended:
            lines = self.read()
        return lines[0] if lines else None


class _Pulse:
    """Whether a process still does something: one that waits for itself uses no processor time."""

    def __init__(self, pid: int) -> None:
        self._path = f"/proc/{pid}/stat"
        self._used = 0
        self._since = time.monotonic()

    def stopped(self) -> bool:
        """True if no processor time was used for `STUCK` seconds; False where nobody tells."""
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return False
        used = int(fields[11]) + int(fields[12])
        if used > self._used + 1:
            self._used, self._since = used, time.monotonic()
        return time.monotonic() - self._since > STUCK


class _Child:
    def __init__(self, task: Job, body: Callable[[int], None], answers: int) -> None:
        self.task = task
        self.answers = answers
        self.printed = 0
        self.tail = b""
        report, report_end = os.pipe()
        output, output_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _become(task, output_end)
            for descriptor in (answers, report, output, output_end):
                os.close(descriptor)
            try:
                body(report_end)
            finally:
                os._exit(0)
        with suppress(PermissionError, ProcessLookupError):  # the child was quicker, or is gone
            os.setpgid(self.pid, self.pid)
        os.close(report_end)
        os.close(output_end)
        self.pulse = _Pulse(self.pid)
        self.reports = _Lines(report)
        self.output = output

    def watch(self, jobs: _Lines) -> dict[str, object]:
        """Wait for the child's end: its return code, why it was ended if so, its last output."""
        deadline = time.monotonic() + self.task["limits"]["wall"]
        reason = ""
        status: int | None = None
        sources = {self.reports.descriptor, self.output, jobs.descriptor}
        while True:
            ready, _, _ = select.select(list(sources), [], [], 0.1 if status is None else 0)
            self._forward(ready, sources)
            if jobs.descriptor in ready:
                jobs.read()
                sources.discard(jobs.descriptor)
                reason = "stopped"
            elif not ready and status is not None:
                break
            elif time.monotonic() > deadline:
                reason = reason or "wall"
            elif self.printed > self.task["limits"]["output"]:
                reason = reason or "output"
            if status is None:
                if self.task["mode"] == "run" and not reason and self.pulse.stopped():
                    reason = "stuck"
                if reason:
                    self._kill()
                status = self._ended()
        os.close(self.reports.descriptor)
        os.close(self.output)
        code = os.waitstatus_to_exitcode(status)
        return {"code": code, "reason": reason, "output": self.tail.decode(errors="replace")}

    def _ended(self) -> int | None:
        """The status of the child if it has ended; then the rest of its group ends as well."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self._kill()
        return status

    def _forward(self, ready: list[int], sources: set[int]) -> None:
        if self.reports.descriptor in ready:
            for line in self.reports.read():
                os.write(self.answers, line + b"\n")
            if self.reports.ended:
                sources.discard(self.reports.descriptor)
        if self.output in ready:
            data = os.read(self.output, 1 << 20)
            self.printed += len(data)
            self.tail = (self.tail + data)[-TAIL:]
            if not data:
                sources.discard(self.output)

    def _kill(self) -> None:
        with suppress(PermissionError, ProcessLookupError):  # nobody of the group is left
            os.killpg(self.pid, signal.SIGKILL)


def _become(task: Job, output: int) -> None:
    """Make this forked process a child of its own: group, limits, files, home, no network.

    On a device the runtime itself talks to its parts through sockets.
    """
    os.setpgid(0, 0)
    _die_with_parent()
    if task["mode"] != "device":
        sandbox.forbid_network()
    import resource

    limits, folder = task["limits"], task["folder"]

    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, limits["cpu"]),
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
    ):
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
        resource.setrlimit(kind, (limit, most))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(HOME=folder, TMPDIR=folder)


def _die_with_parent() -> None:
    """Ask Linux to end this process when the server dies."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
