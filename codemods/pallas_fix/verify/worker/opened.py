"""Which files a job opens, so that its answer can be remembered while they stay the same."""

from __future__ import annotations

import os
import sys

_SYSTEM = ("/proc/", "/dev/", "/sys/")


class Opened:
    """The files that are opened from `start` on, imported modules among them."""

    def __init__(self, root: str, own: list[str]) -> None:
        """Files below the folders `own`, those of the job, do not count."""
        self._root = root + os.sep
        self._own = [folder + os.sep for folder in (*own, os.path.dirname(__file__))]
        self._paths: set[str] = set()

    def start(self) -> None:
        """Watch for the rest of the process: an audit hook cannot be taken away."""
        join, known, root = os.path.join, self._paths, self._root

        def see(event: str, arguments: tuple[object, ...]) -> None:
            if event == "open" and isinstance(arguments[0], str):
                known.add(join(root, arguments[0]))

        sys.addaudithook(see)

    def told(self) -> list[str]:
        """Their paths, relative to the project where they belong to it; without folders."""
        paths = {
            path.removeprefix(self._root)
            for path in list(self._paths)
            if not path.startswith((*_SYSTEM, *self._own)) and os.path.isfile(path)
        }
        return sorted(paths)
