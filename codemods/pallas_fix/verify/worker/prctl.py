"""What a process asks Linux to do with itself (`prctl`)."""

from __future__ import annotations

import ctypes
import os
import sys

DEATH_SIGNAL, SYSTEM_CALLS, SUBREAPER, NO_NEW_PRIVILEGES = 1, 22, 36, 38
"""PR_SET_PDEATHSIG, _SECCOMP, _CHILD_SUBREAPER and _NO_NEW_PRIVS (linux/prctl.h)."""


def control(operation: int, value: int, more: int = 0) -> None:
    """Ask for one thing; nothing happens on another system. Raises OSError."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(operation, *map(ctypes.c_ulong, (value, more, 0, 0))):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
