"""Regions of a text that a fix changes, as programs take them: exact ones, and whole lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


@dataclass(frozen=True, slots=True)
class Replacement:
    """`text` in the place of a half-open region: lines and columns (characters) count from 1."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class LineChange:
    """`text`, without its last line end, in the place of whole lines: `first` to `last`."""

    first: int
    last: int
    text: str


def replacements(before: str, after: str) -> Iterator[Replacement]:
    """The regions of `before` whose replacement gives `after`, in order; none of them meet."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    starts = [0, *accumulate(map(len, old))]
    for tag, first, last, other, end in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            continue
        appended = first == last == len(old) and first > 0
        if appended:
            # Not every program knows a place after the last line.
            first, other = first - 1, other - 1
        gone, text = "".join(old[first:last]), "".join(new[other:end])
        head, tail = _shared(gone, text)
        if appended:
            head = 0
        yield Replacement(
            *_position(starts, before, starts[first] + head),
            *_position(starts, before, starts[last] - tail),
            text[head : len(text) - tail],
        )


def line_change(before: str, after: str) -> LineChange | None:
    """The whole lines of `before`, in one piece, whose replacement gives `after`.

    Lines end at newline characters, as in git. There is at least one, and the text is not empty.
    None where that cannot be: nothing is left of the file, or the end of its last line changes.
    """
    old, new = before.split("\n"), after.split("\n")
    head = _common(old, new)
    tail = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - head)
    while head + tail == len(old) or "\n".join(new[head : len(new) - tail]) in ("", "\r"):
        # What only comes or goes needs a line beside it that stays.
        if head:
            head -= 1
        elif tail:
            tail -= 1
        else:
            return None
    last, text = len(old) - tail, "\n".join(new[head : len(new) - tail])
    ends_differ = old[last - 1].endswith("\r") != text.endswith("\r")
    if ends_differ or (tail == 0 and "" in (old[-1], new[-1])):
        return None
    return LineChange(head + 1, last, text.removesuffix("\r"))


def _shared(one: str, other: str) -> tuple[int, int]:
    """The lengths of the beginning and of the end that both share, with line ends in one piece."""
    head = _common(one, other)
    if one[head - 1 : head] == "\r":
        head -= 1
    tail = _common(one[head:][::-1], other[head:][::-1])
    within = any(
        text[len(text) - tail - 1 : len(text) - tail + 1] == "\r\n" for text in (one, other)
    )
    return head, tail - (1 if within and tail else 0)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items both have in common from the first on."""
    return next(
        (number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def _position(starts: Sequence[int], text: str, offset: int) -> tuple[int, int]:
    """The line and the column of an offset, both from 1."""
    line = bisect_right(starts, offset)
    if offset == len(text) and line > 1 and text[-1] not in "\r\n":
        line -= 1
    return line, offset - starts[line - 1] + 1
