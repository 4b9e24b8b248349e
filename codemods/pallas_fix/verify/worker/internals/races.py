"""Reports the races that the TPU interpreter finds; the same names since jax 0.10.2.

`RaceDetectionState`, its `races_found`, `check_read` and `check_write`:
jax/_src/pallas/mosaic/interpret/race_detection_state.py. `user_frames`:
jax/_src/source_info_util.py.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from jax._src import source_info_util
from jax._src.pallas.mosaic.interpret.race_detection_state import RaceDetectionState

Report = Callable[[str, Iterator[tuple[str, int]]], None]
"""Told of a race: what found it, `read` or `write`, and file and line of the frames there."""


def watch_races(report: Report) -> None:
    """Call `report` for each access that races with an earlier one."""
    lock = threading.Lock()

    def watch(name: str) -> None:
        check = getattr(RaceDetectionState, f"check_{name}")

        @functools.wraps(check)
        def checked(self: Any, *args: Any, source_info: Any = None, **kwargs: Any) -> None:
            with lock:
                check(self, *args, source_info=source_info, **kwargs)
                if self.races_found:
                    self.races_found = False
                    report(name, _places(source_info))

        setattr(RaceDetectionState, f"check_{name}", checked)

    watch("read")
    watch("write")


def _places(source_info: Any) -> Iterator[tuple[str, int]]:
    """File and line of the frames, innermost first; none where the launch itself copies."""
    traceback = source_info.traceback if source_info is not None else None
    for frame in source_info_util.user_frames(traceback):
        yield frame.file_name, frame.start_line
