"""Tells what jax's GPU interpreters cannot do from what the user's kernel does wrong."""

from __future__ import annotations

import os
import re
from traceback import walk_tb

import jax

from ..chips import Unavailable
from ..failures import KernelError

_PALLAS = os.path.join(os.path.dirname(jax.__file__), "_src", "pallas") + os.sep
_INTERPRETERS = (
    os.path.join(_PALLAS, "mosaic", "interpret") + os.sep,
    os.path.join(_PALLAS, "mosaic_gpu", "interpret") + os.sep,
    os.path.join(_PALLAS, "hlo_interpreter.py"),
)
"""jax's own, of every jax since 0.11.1."""

_FAULTS = re.compile(
    r"[Oo]ut-of-bounds|out of bounds|[Bb]arrier (?:\d+ )?(?:completed|deallocated|is used)"
    r"|only observed barrier|waiting at barrier|is awaiting phase|allocated a barrier after"
    r"|copy_smem_to_gmem read-side|alias group|only allows arriving|does not select one barrier"
    r"|has more axes than barrier|barrier without indexing"
)
"""What the interpreter says of kernels that are wrong; whatever else it says is a gap of its own
(shared_memory.py, gpu_callbacks.py and jaxpr_interpret.py of
jax/_src/pallas/mosaic_gpu/interpret/)."""

_NO_RULE = re.compile(
    r"MLIR translation rule for primitive '\w+' not found|No state discharge rule implemented"
    r"|Cannot lower jaxpr with effects"
)

_ADDRESS = re.compile(r"\bbarrier \d{6,}")
"""How jax names a barrier: by where it lies in the memory of the process."""


def of_callback(error: Exception, where: str) -> Exception:
    """What to raise for an error in a callback: Unavailable for a gap, KernelError for a fault.

    `where` is `file:line` of the operation.
    """
    if _in_interpreter(error) and not _FAULTS.search(str(error)):
        return _gap(error)
    told = _ADDRESS.sub("a barrier", str(error))
    if not isinstance(error, ValueError | IndexError):
        told = f"{type(error).__name__}: {told}"
    return KernelError(told, where)


def explain(error: Exception) -> Exception:
    """What to raise for an error outside of any callback: Unavailable for a gap, or itself."""
    text = str(error)
    lost = isinstance(error, NotImplementedError | ValueError) and _NO_RULE.search(text)
    if lost or (_in_interpreter(error) and not _FAULTS.search(text)):
        return _gap(error)
    return error


def _in_interpreter(error: Exception) -> bool:
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    return any(file.startswith(_INTERPRETERS) for file in files)


def _gap(error: Exception) -> Unavailable:
    first = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    return Unavailable(f"stage not available: jax's interpreter cannot run this kernel: {first}")
