"""No network: a seccomp filter that this process and all that it starts keep for good.

A filter is chosen over namespaces for users and networks, as containers and Ubuntu often forbid
these to an unprivileged process, and nothing but Linux 3.5 is needed for a filter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys
from contextlib import suppress

from .prctl import NO_NEW_PRIVILEGES, SYSTEM_CALLS, control


def forbid() -> bool:
    """Take the network from this process for good; False where the system cannot do that.

    For a process of one thread: a thread that already runs would keep it.
    """
    program = _filter()
    if program is None or not _tried(program):
        return False
    _install(program)
    sys.addaudithook(_explain)
    return True


_NO_NETWORK = "the worker has no network"
_LOOK_UPS = frozenset(("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"))


def _explain(event: str, arguments: tuple[object, ...]) -> None:
    """Say in Python why a socket is refused; looking up a name would fail with no reason."""
    internet = event == "socket.__new__" and arguments[1] in (socket.AF_INET, socket.AF_INET6)
    if internet or event in _LOOK_UPS:
        raise PermissionError(errno.EACCES, _NO_NETWORK)


_MACHINES = {"x86_64": (0xC000003E, 41, 62), "aarch64": (0xC00000B7, 198, 129)}
"""AUDIT_ARCH and the numbers of `socket` and `kill` (linux/audit.h, asm/unistd.h)."""

_IO_URING_SETUP = 425
"""The same on all machines. Its rings can open sockets past any filter (Linux 5.19)."""

_X32 = 0x40000000
"""The bit of the numbers of x32, which could name `socket` otherwise (asm/unistd.h)."""

_ARCHITECTURE, _NUMBER, _FIRST = 4, 0, 16
"""Where `struct seccomp_data` has them; of the first argument the low half (little endian)."""

_ALLOW, _DENY, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
"""SECCOMP_RET_ALLOW, _ERRNO and _KILL_PROCESS (linux/seccomp.h)."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K (linux/bpf_common.h)."""

_NETLINK = 16
"""The C library asks for the interfaces by it; it carries nothing out of the machine."""


def _filter() -> bytes | None:
    """The program that is asked about each system call; None for an unknown machine.

    Sockets are for this machine only. `kill` may not mean every process of the user: a -1 that
    a failed start has left behind must not end the session.
    """
    known = _MACHINES.get(os.uname().machine) if sys.platform == "linux" else None
    if known is None or sys.maxsize < 1 << 32:
        return None
    architecture, open_socket, kill = known
    unknown = _DENY | errno.ENOSYS
    lines = (
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, unknown),
        *_when(_IO_URING_SETUP, unknown),
        (_EQUAL, 0, 4, kill),
        (_LOAD, 0, 0, _FIRST),
        *_when(0xFFFFFFFF, _DENY | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 1, 0, open_socket),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST),
        *_when(socket.AF_UNIX, _ALLOW),
        *_when(_NETLINK, _ALLOW),
        (_RETURN, 0, 0, _DENY | errno.EACCES),
    )
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _when(value: int, answer: int) -> tuple[tuple[int, int, int, int], ...]:
    return (_EQUAL, 0, 1, value), (_RETURN, 0, 0, answer)


def _tried(program: bytes) -> bool:
    """True if the filter does in a child what it should: it can never be taken away."""
    child = os.fork()
    if child == 0:
        status = 1
        with suppress(BaseException):
            _install(program)
            socket.socketpair()
            try:
                socket.socket(socket.AF_INET)
            except PermissionError:
                status = 0
        os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _install(program: bytes) -> None:
    """Give the filter to the kernel. Raises OSError."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))

    given = Program(len(program) // 8, program)
    control(NO_NEW_PRIVILEGES, 1)
    control(SYSTEM_CALLS, 2, ctypes.addressof(given))  # SECCOMP_MODE_FILTER
