"""What a job tells the tool while it works: one JSON line an event."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from .chips import Unavailable
from .failures import describe

Task = dict[str, Any]


class Stopped(Exception):
    """A stage failed or was the last one asked for."""


class Report:
    """Tells the server what happens."""

    def __init__(self, descriptor: int, task: Task) -> None:
        self._descriptor = descriptor
        self._task = task
        self._dumps = json.dumps  # the user's code may replace it, as all below
        self._write = os.write
        self._clock = time.perf_counter
        self._process, self._leave, self._owner = os.getpid, os._exit, os.getpid()

    def send(self, **event: object) -> None:
        """Send one event. A copy of the process that the user's code has forked ends here."""
        if self._process() != self._owner:
            self._leave(0)
        line = self._dumps(event).encode() + b"\n"
        while line:
            line = line[self._write(self._descriptor, line) :]

    def stage(self, name: str, action: Callable[[], Any]) -> Any:
        """Do what a stage asks and report how it went. Raises Stopped if it failed."""
        self.send(event="begin", stage=name)
        start = self._clock()
        failure: dict[str, str] = {}
        ok: bool | None = True
        value = None
        try:
            value = action()
        except Unavailable as error:
            ok, failure = None, {"message": str(error)}
        except BaseException as error:
            missing = unavailable(error)
            if missing is not None:
                ok, failure = None, {"message": str(missing)}
            else:
                ok, failure = False, describe(error, self._task["root"], self._task["file"])
        seconds = round(self._clock() - start, 3)
        self.send(event="end", stage=name, ok=ok, seconds=seconds, **failure)
        if not ok or name == self._task["until"]:
            raise Stopped
        return value


def unavailable(error: BaseException) -> Unavailable | None:
    """The `Unavailable` that an error was raised from, if there is one."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if isinstance(cause, Unavailable):
            return cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return None
