"""Where a line of one version of a text stands in the other."""

from __future__ import annotations

import re
from functools import cached_property

_NEWLINE = re.compile(r"\r\n|\r|\n")


class Moves:
    """The lines of two versions of a text, matched; lines count from 1."""

    def __init__(self, before: str, after: str) -> None:
        self._before = before
        self._after = after

    def forth(self, line: int) -> int:
        """The line of the version after that holds, or replaced, a line of the one before."""
        return next((n + line - b for b, e, n, _ in self._blocks if b <= line < e), line)

    def back(self, line: int) -> int:
        """The line of the version before that holds, or gave way to, a line of the one after."""
        return next((b + line - n for b, _, n, e in self._blocks if n <= line < e), line)

    @cached_property
    def _blocks(self) -> list[tuple[int, int, int, int]]:
        if self._before == self._after:
            return []
        from difflib import SequenceMatcher

        old, new = _NEWLINE.split(self._before), _NEWLINE.split(self._after)
        codes = SequenceMatcher(None, old, new).get_opcodes()
        return [(b + 1, e + 1, n + 1, m + 1) for _, b, e, n, m in codes]
