"""What a job may use: its limits, its files, its home. See `network` for what it may not."""

from __future__ import annotations

import faulthandler
import fcntl
import os
import resource
import signal
from contextlib import suppress

from .prctl import DEATH_SIGNAL, control

Limits = dict[str, int]

_MOST_FILES = 4096

_MOST_TASKS = 4096
"""How many processes and threads all users may start beside a job before it may start no more.

The system counts them by user, not by job, so this is no more than a last resort.
"""


def confine(limits: Limits, folder: str, output: int, server: int) -> None:
    """Make this forked process one that can do no harm by accident.

    It gets a session of its own, which also gives it no more processor time than the server where
    Linux groups by sessions, the limits, an empty input, and `folder` as its home. It prints to
    `output` and dies with the process `server`.
    """
    os.setsid()
    with suppress(OSError):
        control(DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(0)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory ends, it ends first
    _limit(limits)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, number in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, number)
    os.close(null)
    faulthandler.enable(2)
    os.environ.update(HOME=folder, TMPDIR=folder)


def _limit(limits: Limits) -> None:
    kinds = [
        (resource.RLIMIT_CORE, 1),  # with 0 a program may still be called that keeps the core
        (resource.RLIMIT_CPU, limits["cpu"]),
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
    ]
    running = _running()
    if running:
        kinds.append((resource.RLIMIT_NPROC, running + _MOST_TASKS))
    for kind, limit in kinds:
        most = resource.getrlimit(kind)[1]
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
        resource.setrlimit(kind, (limit, most))


def _running() -> int:
    """The processes and threads of all users; 0 where the system does not tell."""
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def out_of_reach(descriptor: int) -> int:
    """The same file under the first number that a process may not use for others.

    Code that writes to all numbers, or closes them, goes up to its limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    last = (_MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, _MOST_FILES)) - 1
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, last)
    os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (last, hard))
    return moved
