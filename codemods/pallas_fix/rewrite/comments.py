"""Comments that are set or taken away; libcst carries them as it carries all others."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Fix, SetComment
from pallas_fix.rewrite.text import BOM

_LINE_END = re.compile(r"\r\n|\r|\n")
_PRIVATE = range(0xE000, 0xF900)


@dataclass(frozen=True, slots=True)
class Comments:
    """The comments that some fixes set.

    `marked` is the text with a mark in the place of each: it moves no position of code, for
    nothing but another comment follows it on its line.
    """

    marked: str
    _mark: str = ""
    _edits: tuple[tuple[int, str, str], ...] = ()
    """For each mark: the number of its fix, the comment as it was, and as it is to be."""

    @classmethod
    def of(cls, text: str, fixes: Sequence[Fix]) -> Comments:
        """The comments that the fixes set in `text`; the marks have no character of it."""
        edits = [
            (edit, number)
            for number, fix in enumerate(fixes)
            for edit in fix.edits
            if isinstance(edit, SetComment)
        ]
        if not edits:
            return cls(text)
        mark = next(chr(code) for code in _PRIVATE if chr(code) not in text)
        starts = [len(text) - len(text.removeprefix(BOM))]
        starts += (end.end() for end in _LINE_END.finditer(text))
        made: list[tuple[int, str, str]] = []
        parts: list[str] = []
        at = 0
        for edit, number in sorted(edits, key=lambda item: item[0].span):
            start = starts[edit.span.line - 1] + edit.span.column
            end = starts[edit.span.end_line - 1] + edit.span.end_column
            if start < at:
                continue
            parts += (text[at:start], f"#{mark}{len(made)}{mark}")
            made.append((number, text[start:end], edit.text))
            at = end
        return cls("".join([*parts, text[at:]]), mark, tuple(made))

    def placed(self, text: str, applied: Container[int]) -> str:
        """`text` with comments in the place of the marks: the new ones of the fixes `applied`."""
        if not self._mark:
            return text
        pattern = re.compile(f"#{self._mark}(\\d+){self._mark}")
        for match in reversed(list(pattern.finditer(text))):
            number, old, new = self._edits[int(match[1])]
            before, after = text[: match.start()], text[match.end() :]
            if number not in applied:
                new = old
            elif not new:
                before, after = _closed(before, after)
            text = before + new + after
        return text


def _closed(before: str, after: str) -> tuple[str, str]:
    """Two texts without the blanks, or the line, of the comment that stood between them."""
    end = _LINE_END.search(after)
    rest = after[: end.start()] if end else after
    if rest.strip():
        return before, after.lstrip(" \t")
    after = after[len(rest) :]
    kept = before.rstrip(" \t")
    if end and (not kept or kept[-1] in "\r\n" or kept == BOM):
        return kept, after[end.end() - end.start() :]
    return kept, after
