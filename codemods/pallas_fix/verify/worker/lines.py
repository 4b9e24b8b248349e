"""Lines from a pipe."""

from __future__ import annotations

import os


class Lines:
    """Whole lines from a file descriptor; `ended` once it has no more, `size` in bytes so far."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.ended = False
        self.size = 0
        self._rest = b""

    def read(self) -> list[bytes]:
        """The lines that one read completes; waits if there is nothing to read."""
        data = os.read(self.descriptor, 1 << 16)
        self.ended = not data
        self.size += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines

    def next(self) -> bytes | None:
        """The next line; None at the end. For one line at a time only."""
        lines: list[bytes] = []
        while not lines and not self.ended:
            lines = self.read()
        return lines[0] if lines else None
