"""How a job does while it is watched: does it move, does it multiply, does it fill the disk?"""

from __future__ import annotations

import os
import time
from typing import Any

from .processes import descendants

STUCK = 20.0
"""Seconds without any processor time after which a run is taken for a deadlock."""

_PERIOD = 0.5
"""Seconds between two looks."""

_DISK = 1 << 30
"""Free bytes that a job has to leave on the disk of its folder, or half of what it found."""


class Pulse:
    """Looks at the process of a job from time to time."""

    def __init__(self, pid: int, task: dict[str, Any]) -> None:
        self._status = f"/proc/{pid}/stat"
        self._task = task
        self._next = time.monotonic() + _PERIOD
        self._used = 0
        self._moved = time.monotonic()
        self._least = min(_DISK, _free(task["folder"]) // 2)

    def trouble(self) -> str:
        """Why the job has to end, in one word; empty while it may go on."""
        now = time.monotonic()
        if now < self._next:
            return ""
        self._next = now + _PERIOD
        if len(descendants()) > self._task["limits"]["processes"]:
            return "processes"
        if _free(self._task["folder"]) < self._least:
            return "disk"
        return "stuck" if self._task["mode"] == "run" and self._stuck(now) else ""

    def _stuck(self, now: float) -> bool:
        """True if it has waited for `STUCK` seconds: who waits for itself uses no processor."""
        used = self._processor_time()
        if used is None or used > self._used + 1:
            self._used, self._moved = used or 0, now
        return now - self._moved > STUCK

    def _processor_time(self) -> int | None:
        """In ticks of the system's clock (proc_pid_stat(5)); None where it does not tell."""
        try:
            with open(self._status, encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return None
        return int(fields[11]) + int(fields[12])


def _free(folder: str) -> int:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize
