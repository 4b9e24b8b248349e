"""The terminal on which people read: its width, its colours, and a line of progress."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pallas_fix.report.printable import printable


def colour() -> bool:
    """True if stderr is to be coloured: a terminal, but see no-color.org and force-color.org."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def width() -> int | None:
    """The columns of the terminal; None where stderr is none, and lines stay whole."""
    return max(40, shutil.get_terminal_size().columns) if sys.stderr.isatty() else None


class Progress:
    """Says on stderr what is being waited for.

    On a terminal that is one line, which goes away; elsewhere a line for each step.
    """

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._moving = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __call__(self, text: str) -> None:
        """Show `text` in the place of what was shown before, or below."""
        if self._shown and self._moving:
            room = (width() or 80) - 1
            sys.stderr.write(f"\r\x1b[K{printable(text)[:room]}")
        elif self._shown:
            sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._shown and self._moving:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@contextmanager
def progress(shown: bool) -> Iterator[Progress]:
    """A line of progress that is gone when the block ends, however it ends."""
    line = Progress(shown)
    try:
        yield line
    finally:
        line.clear()
