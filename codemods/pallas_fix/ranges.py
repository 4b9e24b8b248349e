"""Lines of one text, and where they stand in another."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `start` to `end` (the end left out) of one text that are `new` to `new_end` of another.

    One of the two ranges may be empty.
    """

    start: int
    end: int
    new: int
    new_end: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a text: ranges with their first and last line.

    A range of which the last line is the one before the first is a place where lines were
    deleted, between these two.
    """

    ranges: tuple[tuple[int, int], ...] = ()

    def touch(self, first: int, last: int) -> bool:
        """True if one of the lines `first` to `last` is among these, or lines between them went."""
        return any(start <= last and end >= first for start, end in self.ranges)

    def carried(self, hunks: Sequence[Hunk], *, all_new: bool = False) -> Lines:
        """These lines in the text that the hunks lead to.

        Lines that a hunk puts in the place of some of these are among them; with `all_new`, all
        lines that a hunk brings.
        """
        made = {
            (hunk.new, hunk.new_end - 1)
            for hunk in hunks
            if all_new or self.touch(hunk.start, hunk.end - 1)
        }
        ends = [(1, 1), *((hunk.end, hunk.new_end) for hunk in hunks)]
        starts = [*(hunk.start for hunk in hunks), sys.maxsize]
        for (first, new), after in zip(ends, starts, strict=True):
            for start, end in self.ranges:
                low, high = max(start, first), min(end, after - 1)
                if low <= high or (end < start and first <= start <= after):
                    made.add((low + new - first, high + new - first))
        return Lines(tuple(sorted(made)))


EVERY = Lines(((1, sys.maxsize),))


def hunks_between(before: str, after: str) -> list[Hunk]:
    """How two texts differ."""
    from difflib import SequenceMatcher

    old, new = _NEWLINE.split(before), _NEWLINE.split(after)
    return [
        Hunk(start + 1, end + 1, new_start + 1, new_end + 1)
        for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new).get_opcodes()
        if tag != "equal"
    ]
