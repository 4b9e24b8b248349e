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

_FAULTS = re.compile("Out-of-bounds|Revisited block|cannot be referenced directly")
"""What the interpreter says of kernels that are wrong; whatever else it says is a gap of its own
(jax/_src/pallas/mosaic/interpret/interpret_pallas_call.py)."""

_NO_RULE = re.compile(
    r"MLIR translation rule for primitive '\w+' not found|No state discharge rule implemented"
)

_REFUSALS = (NotImplementedError, TypeError, ValueError, IndexError, Unavailable)
"""With these the stand-ins refuse what jax refuses."""

_FRAME = re.compile(r'^  File "([^"]+)", line \d+', re.MULTILINE)


class KernelError(Exception):
    """What jax's interpreter, or the user's own callback, says as the kernel runs."""


def explain(error: Exception) -> Exception:
    """What to raise for an error of a run: Unavailable for a gap, the error itself for a fault.

    An error in a callback, which jax tells with a traceback of its own frames, becomes a
    `KernelError` with the message alone.
    """
    text = str(error)
    if "CpuCallback error" in text:
        return _of_callback(text)
    said = f"{type(error).__name__}: {text}"
    if isinstance(error, NotImplementedError) and _NO_RULE.search(text):
        return _gap(said)
    places = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    if any(map(_is_interpreter, places)) and not _FAULTS.search(text):
        return _gap(said)
    if places and places[-1].startswith(_HERE) and not isinstance(error, _REFUSALS):
        return Unavailable(f"stage not available: the emulator failed: {said}")
    return error


def _of_callback(text: str) -> Exception:
    """The error of a callback from the text of its traceback."""
    frames = list(_FRAME.finditer(text))
    if not frames:
        return KernelError(text)
    path = frames[-1][1]
    told, _, _ = text[frames[-1].end() :].partition("\n=== Source Location")
    lines = told.split("\n")[1:]
    said = "\n".join(line for line in lines if not line.startswith("    ")).strip()
    if path.startswith(_HERE):
        return Unavailable(f"stage not available: the emulator failed: {said}")
    if _is_interpreter(path) and not _FAULTS.search(said):
        return _gap(said)
    return KernelError(said)


def _is_interpreter(path: str) -> bool:
    return path.startswith(_JAX) and _INTERPRETER in path


def _gap(said: str) -> Unavailable:
    first = said.strip().partition("\n")[0]
    return Unavailable(f"stage not available: jax's interpreter cannot run this kernel: {first}")
