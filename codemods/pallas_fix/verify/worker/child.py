"""The process of one job: forked, watched, ended with all that it has started."""

from __future__ import annotations

import errno
import json
import mmap
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from . import sandbox
from .lines import Lines
from .processes import changed, end_all
from .pulse import Pulse

TAIL = 1 << 16
"""Bytes of its last output that are kept for the report."""

_LAST_WORDS = 2.0
"""Seconds in which a process that hangs has to say where."""

_CUT, _BROKEN = 1, 2
"""How the worker's own code may fail: it cannot report any more, or it is wrong."""


class Child:
    def __init__(self, task: dict[str, Any], body: Callable[[int], None], answers: int) -> None:
        """Fork it: it calls `body` with the file descriptor for its reports.

        What it reports goes on to the file descriptor `answers`.
        """
        self._task = task
        self._answers = answers
        self._tail = b""
        self._printed = 0
        self._status: int | None = None
        self._reason = ""
        self._failed = mmap.mmap(-1, 1)
        self._killed_for_memory = _killed_for_memory()
        server = os.getpid()
        reports, report = os.pipe()
        self._output, output = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            leave = os._exit
            try:
                sandbox.confine(task["limits"], task["folder"], output, server)
                for descriptor in (answers, reports, self._output, output):
                    os.close(descriptor)
                body(sandbox.out_of_reach(report))
            except BaseException as error:
                cut = isinstance(error, OSError) and error.errno == errno.EBADF
                self._failed[0] = _CUT if cut else _BROKEN
                traceback.print_exc()
            finally:
                leave(0)
        os.close(report)
        os.close(output)
        self._reports = Lines(reports)
        self._sources = {reports, self._output}
        self._pulse = Pulse(self._pid, task)

    def watch(self, jobs: Lines) -> dict[str, object]:
        """Wait for its end: its return code, why it was ended if so, its last output.

        It is ended as well when `jobs` has something to say, which is that nobody waits any more.
        """
        deadline = time.monotonic() + self._task["limits"]["wall"]
        try:
            while self._status is None and not self._reason:
                self._look(jobs)
                if not self._reason and time.monotonic() > deadline:
                    self._reason = "wall"
            if self._status is None and self._reason in ("wall", "stuck"):
                self._ask_where()
        finally:
            status = end_all(self._pid)
        self._status = status if self._status is None else self._status
        while self._take(0):
            pass
        os.close(self._reports.descriptor)
        os.close(self._output)
        code = -signal.SIGKILL if self._status is None else os.waitstatus_to_exitcode(self._status)
        output = self._tail.decode(errors="replace")
        return {"code": code, "reason": self._reason or self._why(code), "output": output}

    def _look(self, jobs: Lines) -> None:
        """Take in what it says, and see whether it has ended or has to."""
        # Who has closed its pipes is about to end.
        ready = self._take(0.1 if self._sources else 0.005, jobs.descriptor)
        if jobs.descriptor in ready:
            jobs.read()
            self._reason = "stopped"
        elif self._printed + self._reports.size > self._task["limits"]["output"]:
            self._reason = "output"
        self._see_changes()
        self._reason = self._reason or self._pulse.trouble()

    def _see_changes(self) -> None:
        for pid, status in changed():
            if pid == self._pid and os.WIFSTOPPED(status):
                self._reason = self._reason or "paused"
            elif pid == self._pid:
                self._status = status

    def _take(self, wait: float, *others: int) -> list[int]:
        """Take in what there is to read, after `wait` seconds at most; returns what is ready."""
        ready, _, _ = select.select([*self._sources, *others], [], [], wait)
        if self._reports.descriptor in ready:
            for line in self._reports.read():
                if _is_event(line):
                    os.write(self._answers, line + b"\n")
                else:
                    self._reason = self._reason or "protocol"
            if self._reports.ended:
                self._sources.discard(self._reports.descriptor)
        if self._output in ready:
            data = os.read(self._output, 1 << 20)
            self._printed += len(data)
            self._tail = (self._tail + data)[-TAIL:]
            if not data:
                self._sources.discard(self._output)
        return ready

    def _ask_where(self) -> None:
        """Abort it, on which it prints where its threads are (`faulthandler`)."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGABRT)
        end = time.monotonic() + _LAST_WORDS
        while self._status is None and time.monotonic() < end:
            self._take(0.05)
            self._see_changes()

    def _why(self, code: int) -> str:
        if self._failed[0]:
            return "cut" if self._failed[0] == _CUT else "broken"
        if code == -signal.SIGKILL and _killed_for_memory() > self._killed_for_memory:
            return "memory"
        return ""


def _is_event(line: bytes) -> bool:
    """False for what the user's code has written where it should not."""
    try:
        return isinstance(json.loads(line)["event"], str)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _killed_for_memory() -> int:
    """How many processes Linux has killed for lack of memory; 0 where it does not tell."""
    with suppress(OSError), open("/proc/vmstat") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
