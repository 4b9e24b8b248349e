"""Runs a program with all that it starts, and ends all of it: in time, or when nobody waits."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pallas_fix.verify.ends import End, Limits

TAIL = 1 << 16
"""Bytes of the last output that are kept."""

_LINGER = 2.0
"""Seconds in which the output of a program that has ended must end as well."""


def watch(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], limits: Limits, mark: str
) -> End:
    """Run a program in `folder` and wait for its end, or for a limit.

    Its processor time is not limited. All processes that have the variable `mark` as it does are
    ended with it. Raises OSError where it cannot be started.
    """
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=dict(environment),
        start_new_session=True,
    )
    try:
        _limit(process.pid, limits)
        reason, output = _read(process, limits)
    finally:
        _kill_group(process.pid)
        process.wait()
        _kill_marked(f"{mark}={environment[mark]}")
        assert process.stdout is not None
        process.stdout.close()
    return End(process.returncode, reason, output.decode(errors="replace"))


def _read(process: subprocess.Popen[bytes], limits: Limits) -> tuple[str, bytes]:
    """Why it was ended, if it was, and the last of its output."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    deadline = time.monotonic() + limits.wall
    tail, printed, last = b"", 0, None
    while True:
        ready, _, _ = select.select([pipe], [], [], 0.1)
        data = os.read(pipe, 1 << 20) if ready else b""
        tail = (tail + data)[-TAIL:]
        printed += len(data)
        now = time.monotonic()
        if printed > limits.output:
            return "output", tail
        if process.poll() is not None:
            if last is None:
                _kill_group(process.pid)
                last = now + _LINGER
            if (ready and not data) or now > last:
                return "", tail
        elif ready and not data:
            time.sleep(0.05)  # it has closed its output, and works on
        if last is None and now > deadline:
            return "wall", tail


def _kill_group(pid: int) -> None:
    with suppress(PermissionError, ProcessLookupError):  # nobody of the group is left
        os.killpg(pid, signal.SIGKILL)


def _limit(pid: int, limits: Limits) -> None:
    """Limit what the process and its children may take, where the system can do that."""
    if sys.platform != "linux":
        return
    import resource

    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file),
    ):
        with suppress(OSError, ValueError):  # it has ended, or its own limit is lower
            _, most = resource.prlimit(pid, kind)
            resource.prlimit(pid, kind, (limit, most))


def _kill_marked(mark: str) -> None:
    """End the processes with that variable: those that have left the group of their parent."""
    if sys.platform != "linux":
        return
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with suppress(OSError), open(f"/proc/{entry.name}/environ", "rb") as file:
            if mark.encode() in file.read().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
