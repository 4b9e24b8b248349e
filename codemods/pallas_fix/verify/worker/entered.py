"""Records which functions of one file are entered."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


class Entered:
    """Tells the qualified names of a file's functions as they first run, from `start` on.

    It tells at once, for the process may not live to tell later.
    """

    def __init__(self, path: str, tell: Callable[[str], None]) -> None:
        self._path = path
        self._tell = tell
        self._told: set[str] = set()

    def start(self) -> None:
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            monitoring.use_tool_id(monitoring.PROFILER_ID, "pallas-fix")
            start = monitoring.events.PY_START
            monitoring.register_callback(monitoring.PROFILER_ID, start, self._started)
            monitoring.set_events(monitoring.PROFILER_ID, start)
        else:
            sys.setprofile(self._profile)

    def _started(self, code: CodeType, offset: int) -> Any:
        self._see(code)
        return sys.monitoring.DISABLE

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self._see(frame.f_code)

    def _see(self, code: CodeType) -> None:
        if code.co_filename == self._path and code.co_qualname not in self._told:
            self._told.add(code.co_qualname)
            self._tell(code.co_qualname)
