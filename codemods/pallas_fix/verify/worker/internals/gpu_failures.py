"""Tells of the errors in callbacks of the Mosaic GPU interpreter, with their lines.

Of an error in a callback XLA keeps the text alone, and of a thread that fails because another one
has failed jax says no more than that. The callbacks, which all take a `token`, and
`reset_gpu_interpret_mode_state`: jax/_src/pallas/mosaic_gpu/interpret/gpu_callbacks.py, since jax
0.11.1.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks

from .races import places

Report = Callable[[Exception, Iterator[tuple[str, int]]], None]
"""Told of an error, and of file and line of the frames of the operation that raised it."""


def watch_failures(report: Report) -> None:
    """Call `report` for each error that a callback raises, also those that others lead to."""
    for name, function in list(vars(gpu_callbacks).items()):
        if _is_callback(name, function):
            setattr(gpu_callbacks, name, _watched(function, report))


def reset() -> None:
    """Forget the memory and the failure of a kernel that did not end."""
    gpu_callbacks.reset_gpu_interpret_mode_state()


def _is_callback(name: str, function: Any) -> bool:
    if not inspect.isfunction(function) or function.__module__ != gpu_callbacks.__name__:
        return False
    return not name.startswith("call_") and "token" in inspect.signature(function).parameters


def _watched(function: Callable[..., Any], report: Report) -> Callable[..., Any]:
    @functools.wraps(function)
    def callback(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            report(error, places(kwargs.get("source_info")))
            raise

    return callback
