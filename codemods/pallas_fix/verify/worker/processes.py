"""All that descends from this process, and its end: also of what hides, ignores or multiplies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

from .prctl import SUBREAPER, control

PATIENCE = 10.0
"""Seconds after which a process that does not even die of SIGKILL is left alone."""


def adopt_orphans() -> None:
    """Become the parent of all that descends from this process and has lost its own parent.

    Where the system cannot do that, only the groups of children can be ended with them.
    """
    with suppress(OSError):
        control(SUBREAPER, 1)


def changed() -> Iterator[tuple[int, int]]:
    """Yield the number and the status of each child that has ended or was stopped since."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if not pid:
                return
            yield pid, status


def descendants() -> set[int]:
    """The numbers of all processes below this one; empty where the system does not tell."""
    found: set[int] = set()
    todo = [os.getpid()]
    while todo:
        fresh = set(_children(todo.pop())) - found
        found |= fresh
        todo += fresh
    return found


def end_all(leader: int) -> int | None:
    """Kill all that descends from this process, and the group of its child `leader`.

    Each is stopped before any is killed, so that nothing can start others faster than they end.
    Returns the status of the leader if it had not been waited for.
    """
    ended = None
    deadline = time.monotonic() + PATIENCE
    _kill(-leader, signal.SIGKILL)
    while time.monotonic() < deadline:
        for pid, status in changed():
            if pid == leader and not os.WIFSTOPPED(status):
                ended = status
        if not _any_child():
            break
        _kill(-leader, signal.SIGKILL)
        found: set[int] = set()
        while fresh := descendants() - found:
            found |= fresh
            for pid in fresh:
                _kill(pid, signal.SIGSTOP)
        for pid in found:
            _kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    return ended


def _any_child() -> bool:
    """True if this process has children, running or not; an orphan below it becomes one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children(pid: int) -> Iterator[int]:
    """Yield the children of a process, by each of its threads (proc_pid_children(5))."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                yield from map(int, file.read().split())


def _kill(pid: int, number: int) -> None:
    with suppress(PermissionError, ProcessLookupError):
        os.kill(pid, number)
