"""What the processes of a command tell the tool: JSON lines that all append to one file."""

from __future__ import annotations

import json
import os
from typing import Any


class Journal:
    """Appends to the file `path`. Each line is one write, so that processes do not mix theirs."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._told: set[str] = set()
        self._dumps = json.dumps  # the user's code may replace these
        self._open, self._write, self._close = os.open, os.write, os.close

    def tell(self, event: str, **content: Any) -> None:
        """Append an event, unless this process has told the very same one before."""
        line = self._dumps({"event": event} | content, sort_keys=True)
        if line in self._told:
            return
        self._told.add(line)
        try:
            file = self._open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            return  # the command has outlived its run
        try:
            self._write(file, line.encode() + b"\n")
        finally:
            self._close(file)
