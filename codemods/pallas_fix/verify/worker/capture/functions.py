"""The functions of the project as they run: which were entered, and with which arguments."""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FrameType
from typing import Any

Tell = Callable[[str, str], None]
"""Takes a file, relative to the root, and the qualified name of a function."""

_REBINDS = ("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")
"""Beginnings of the names of operations that give a local variable another value, or none."""

MOST_HELD = 4096
"""Calls whose first arguments are held; more are not open at once."""


@dataclass(frozen=True)
class Refused:
    """An argument that cannot be written, and why: `an object of type Mesh`."""

    reason: str
    value: Any


@dataclass(frozen=True)
class Arguments:
    """What a function was called with: its parameters by name, `*rest` and `**options`.

    Each is what `Functions.write` makes of it.
    """

    named: dict[str, str | Refused]
    rest: tuple[str | Refused, ...]
    options: dict[str, str | Refused]


class Functions:
    """Watches the functions of files below `root`, from `start` on."""

    def __init__(self, root: str, tell: Tell) -> None:
        self.write: Callable[[Any], str | Refused] = lambda value: Refused(
            "a value from before pallas was imported", value
        )
        """Gives the text of an argument in the case grammar."""
        self.seen: set[str] | None = None
        """Gets the files whose functions are entered, if it is a set."""
        self._root = root + os.sep
        self._tell = tell
        self._known: dict[tuple[str, CodeType], bool] = {}
        self._held: dict[int, tuple[CodeType, Arguments]] = {}
        self._packages = f"{os.sep}site-packages{os.sep}"

    def start(self) -> None:
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            tool = next((tool for tool in (4, 3) if not monitoring.get_tool(tool)), None)
            if tool is None:
                return
            monitoring.use_tool_id(tool, "pallas-fix")
            start = monitoring.events.PY_START
            monitoring.register_callback(tool, start, self._started)
            monitoring.set_events(tool, start)
        else:
            import threading

            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def again(self) -> None:
        """Let `seen` know of the functions that were entered before, when they are once more."""
        if sys.version_info >= (3, 12):
            sys.monitoring.restart_events()

    def file(self, code: CodeType) -> str:
        """The file of some code, relative to the root; empty for code of others."""
        path = code.co_filename
        if not path.startswith(self._root) or self._packages in path:
            return ""
        return path[len(self._root) :]

    def arguments(self, frame: FrameType) -> Arguments:
        """The arguments with which the function of a frame was called.

        Raises LookupError where that is not known any more.
        """
        if not _rebinds(frame.f_code):
            return self._written(frame)
        code, held = self._held[id(frame)]
        if code is not frame.f_code:
            raise LookupError
        return held

    def _written(self, frame: FrameType) -> Arguments:
        code, values, write = frame.f_code, frame.f_locals, self.write
        names = list(parameters(code))
        options = values[names.pop()] if code.co_flags & CO_VARKEYWORDS else {}
        rest = values[names.pop()] if code.co_flags & CO_VARARGS else ()
        return Arguments(
            {name: write(values[name]) for name in names},
            tuple(map(write, rest)),
            {name: write(value) for name, value in options.items()},
        )

    def _started(self, code: CodeType, offset: int) -> Any:
        if self._see(code, 2):
            return None
        return sys.monitoring.DISABLE

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(self._root):
            self._see(frame.f_code, 2)

    def _see(self, code: CodeType, depth: int) -> bool:
        """Take note of a call, `depth` frames above; True if the next one counts as well."""
        file = self.file(code)
        if not file:
            return False
        if self.seen is not None:
            self.seen.add(file)
        again = self._known.get((file, code))
        if again is None:
            again = self._known[file, code] = _rebinds(code)
            self._tell(file, code.co_qualname)
        if again:
            frame = sys._getframe(depth)
            if len(self._held) >= MOST_HELD:
                self._held.clear()
            self._held[id(frame)] = code, self._written(frame)
        return again


def parameters(code: CodeType) -> tuple[str, ...]:
    """The names of the parameters: by position, by name alone, `*rest`, `**options`."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    return code.co_varnames[:count]


_REBOUND: dict[CodeType, bool] = {}


def _rebinds(code: CodeType) -> bool:
    """True if a function, or one inside of it, gives one of its parameters another value."""
    known = _REBOUND.get(code)
    if known is None:
        names = parameters(code)
        known = bool(names) and any(name in names for name in _rebound(code, outer=True))
        _REBOUND[code] = known
    return known


def _rebound(code: CodeType, outer: bool) -> Iterator[str]:
    """Names of local variables of a function that are given values; of inner ones, `nonlocal`s."""
    for instruction in dis.get_instructions(code):
        if not instruction.opname.startswith(_REBINDS):
            continue
        value = instruction.argval
        for name in value if isinstance(value, tuple) else (value,):
            if outer or name in code.co_freevars:
                yield name
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _rebound(inner, outer=False)
