"""Tells what jax's interpreter cannot do from what the user's kernel does wrong."""

from __future__ import annotations

import os
import re
from traceback import walk_tb

import jax

from ..chips import Unavailable

_JAX = os.path.dirname(jax.__file__) + os.sep
_INTERPRETER = os.path.join("pallas", "mosaic", "interpret") + os.sep
"""jax/_src/pallas/mosaic/interpret/, of every jax since 0.10.2."""

_HERE = os.path.dirname(__file__) + os.sep

_OUR_CALLBACK = re.compile(r"CpuCallback error")
_FRAME = re.compile(r'^  File "([^"]+)", line \d+', re.MULTILINE)

_DELIBERATE = ("IndexError", "RuntimeError", "ValueError")
"""What the interpreter raises of kernels that are wrong, such as reads out of bounds."""

_NO_RULE = re.compile(
    r"MLIR translation rule for primitive '\w+' not found|No state discharge rule implemented"
)


class KernelError(Exception):
    """What jax's interpreter, or the user's own callback, says as the kernel runs."""


def explain(error: Exception) -> Exception:
    """What to raise for an error of a run: Unavailable for a gap, the error itself for a fault.

    An error in a callback, which jax wraps in a traceback of its own frames, becomes a
    `KernelError` with the message alone.
    """
    text = str(error)
    if _OUR_CALLBACK.search(text):
        return _of_callback(text)
    name = type(error).__name__
    if _NO_RULE.search(text) and isinstance(error, NotImplementedError):
        return _gap(f"{name}: {text}")
    places = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    interpreted = [path for path in places if path.startswith(_JAX) and _INTERPRETER in path]
    if interpreted and name not in _DELIBERATE:
        return _gap(f"{name}: {text}")
    if places and places[-1].startswith(_HERE) and not _is_of_the_user(name):
        return Unavailable(f"stage not available: the emulator failed: {name}: {text}")
    return error


def _of_callback(text: str) -> Exception:
    """The error of a callback from the text of its traceback."""
    frames = list(_FRAME.finditer(text))
    if not frames:
        return KernelError(text)
    path = frames[-1][1]
    rest = text[frames[-1].end() :].partition("\n=== Source Location")[0].split("\n", 1)[-1]
    said = "\n".join(line for line in rest.splitlines() if not line.startswith("    ")).strip()
    name = said.partition(":")[0]
    if path.startswith(_HERE):
        return Unavailable(f"stage not available: the emulator failed: {said}")
    if path.startswith(_JAX) and _INTERPRETER in path and name not in _DELIBERATE:
        return _gap(said)
    return KernelError(said)


def _is_of_the_user(name: str) -> bool:
    """True for the types with which the stand-ins refuse what jax refuses."""
    return name in ("NotImplementedError", "TypeError", "ValueError", "Unavailable")


def _gap(said: str) -> Unavailable:
    first = said.strip().partition("\n")[0]
    return Unavailable(f"stage not available: jax's interpreter cannot run this kernel: {first}")
