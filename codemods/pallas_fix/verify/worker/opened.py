"""What a job looks at besides the job itself, so that its answer counts while that stays the same.

That is: the files it opens, imported modules among them; the folders it lists; and what it looked
for in vain, which somebody may add.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from importlib.util import source_from_cache
from typing import Any

_SYSTEM = ("/proc/", "/dev/", "/sys/")

_FINDS = ("<frozen importlib", os.path.dirname(importlib.__file__))

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_ASKS = frozenset(
    """
    subprocess.Popen os.system os.posix_spawn os.exec os.fork os.forkpty
    socket.connect socket.getaddrinfo socket.gethostbyname
    """.split()
)
"""Audit events of code that asks another process, or the network."""


class Opened:
    """What is opened, listed and missed from `start` on."""

    def __init__(self, root: str, own: list[str]) -> None:
        """What is below the folders `own`, those of the job, does not count."""
        self._root = root + os.sep
        self._own = tuple(folder + os.sep for folder in (*own, os.path.dirname(__file__)))
        self._paths: set[str] = set()
        self._more = False

    def start(self) -> None:
        """Watch for the rest of the process: an audit hook cannot be taken away."""
        handlers: dict[str, Callable[[tuple[Any, ...]], None]] = {
            "open": self._opened,
            "import": self._imported,
            "os.listdir": self._listed,
            "os.scandir": self._listed,
        }

        def see(event: str, arguments: tuple[Any, ...]) -> None:
            handler = handlers.get(event)
            if handler is not None:
                handler(arguments)
            elif event in _ASKS:
                self._more = True

        sys.addaudithook(see)
        sys.meta_path.append(_Last(self._missed))

    def told(self) -> dict[str, Any]:
        """`paths`, relative to the project where they belong to it, of all that was looked at.

        `more` is true where the answer depends on more than that: the job asked another process or
        the network, or wrote into the project.
        """
        paths = {self._named(_source(path)) for path in list(self._paths)}
        return {"paths": sorted(paths), "more": self._more}

    def _named(self, path: str) -> str:
        return "." if path + os.sep == self._root else path.removeprefix(self._root)

    def _opened(self, arguments: tuple[Any, ...]) -> None:
        path, _, flags = arguments
        if not isinstance(flags, int) or not flags & _WRITES:
            self._see(path)
        elif _absolute(path).startswith(self._root):
            self._more = True

    def _imported(self, arguments: tuple[Any, ...]) -> None:
        self._see(arguments[1])  # the file of an extension module, else None

    def _listed(self, arguments: tuple[Any, ...]) -> None:
        caller = sys._getframe(2).f_code.co_filename
        if not caller.startswith(_FINDS):  # what these miss comes to `_missed`, or is installed
            self._see(arguments[0] or ".")

    def _missed(self, name: str, folders: Iterable[str]) -> None:
        for folder in folders:
            path = os.path.join(folder, name.rpartition(".")[2])
            self._see(path)
            self._see(f"{path}.py")

    def _see(self, path: object) -> None:
        text = _absolute(path)
        if text and not text.startswith((*_SYSTEM, *self._own)):
            self._paths.add(text)


class _Last:
    """The finder that is asked when no other one knows a module."""

    def __init__(self, tell: Callable[[str, Iterable[str]], None]) -> None:
        self._tell = tell

    def find_spec(self, name: str, path: Any = None, target: object = None) -> None:
        self._tell(name, [str(folder) for folder in (sys.path if path is None else path)])


def _absolute(path: object) -> str:
    """Empty for a descriptor, and for what cannot be a path."""
    if not isinstance(path, str | bytes | os.PathLike):
        return ""
    try:
        return os.path.abspath(os.fsdecode(path))
    except (ValueError, OSError):
        return ""


def _source(path: str) -> str:
    """The source of a compiled file, for that one is written anew when the source has changed."""
    try:
        return source_from_cache(path) if path.endswith(".pyc") else path
    except ValueError:
        return path
