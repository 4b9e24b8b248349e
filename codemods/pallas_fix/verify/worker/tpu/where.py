"""Names the user's line that is being traced, or that an operation came from."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from types import FrameType

import jax

_JAX = os.path.dirname(jax.__file__) + os.sep


def user_line(root: str) -> str:
    """`file:line` of the innermost frame below `root`, relative to it; empty if there is none."""
    return innermost(_places(sys._getframe(1)), root)


def innermost(places: Iterable[tuple[str, int]], root: str) -> str:
    """The first of the places, file and line, that is below `root`; empty if none is.

    A jax that is installed below `root` does not count.
    """
    inside = root.rstrip(os.sep) + os.sep
    for path, line in places:
        if path.startswith(inside) and not path.startswith(_JAX):
            return f"{path[len(inside) :]}:{line}"
    return ""


def _places(frame: FrameType | None) -> Iterator[tuple[str, int]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
