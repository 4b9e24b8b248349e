"""Names the user's line that is being traced."""

from __future__ import annotations

import os
import sys
from types import FrameType

import jax

_JAX = os.path.dirname(jax.__file__) + os.sep


def user_line(root: str) -> str:
    """`file:line` of the innermost frame below `root`, relative to it; empty if there is none.

    The frames of a jax that is installed below `root` do not count.
    """
    inside = root.rstrip(os.sep) + os.sep
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(inside) and not path.startswith(_JAX):
            return f"{path[len(inside) :]}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
