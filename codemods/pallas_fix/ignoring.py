"""Writes the comments that ignore findings: at the end of their line, else above it."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pallas_fix.comments import Ignore, read
from pallas_fix.facts.comments import tokens
from pallas_fix.rules.base import Finding

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_END = re.compile(r"(?:\r\n|\r|\n)\Z")
_DIRECTIVE = re.compile(r"#\s*pallas-fix:")
_WIDTH = 88
"""A line is not made longer than that, or than the longest line of the file."""


class Misplaced(Exception):
    """A comment that would change code, or would not hide what it is for."""


def with_ignores(text: str, findings: Sequence[Finding], reason: str = "") -> str:
    """`text` with comments that ignore these findings, and all else as it is.

    A comment that already speaks of a finding gets its code; `reason` is for comments without one.
    Raises Misplaced where that cannot be done.
    """
    writer = _Writer(text, reason)
    for finding in findings:
        writer.ignore(finding)
    made = writer.text()
    if _tree(made) != _tree(text):
        raise Misplaced("a comment would change the code")
    ignores = read(made).ignores
    for finding in findings:
        moved = writer.moved(finding)
        if not any(ignore.hides(moved) for ignore in ignores):
            raise Misplaced(f"there is no place for a comment on line {finding.span.line}")
    return made


def is_reason(text: str) -> bool:
    """True if a comment can hold the text as its reason."""
    found = read(f"x = 1  {_comment(['A'], text)}\n").ignores
    return text.isprintable() and [ignore.reason for ignore in found] == [text.strip()]


def _tree(text: str) -> str:
    return ast.dump(ast.parse(text.removeprefix("\ufeff")))


@dataclass
class _Writer:
    """The comments to be: at the end of lines, above lines, and those that get more codes."""

    source: str
    reason: str
    _at_end: dict[int, set[str]] = field(default_factory=dict)
    _above: dict[int, set[str]] = field(default_factory=dict)
    _more: dict[Ignore, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lines = _LINE.findall(self.source.removeprefix("\ufeff"))
        self._width = max([_WIDTH, *(len(line.rstrip("\r\n")) for line in self._lines)])
        self._open, self._starts, self._comments = _layout(self._lines)

    def ignore(self, finding: Finding) -> None:
        """Choose where the comment for a finding is to stand."""
        for ignore in read(self.source).ignores:
            if ignore.codes and ignore.covers(finding):
                self._more.setdefault(ignore, set()).add(finding.code)
                return
        line, end_line = finding.span.line, finding.span.end_line
        for place in (line, end_line):
            if self._fits(place, {finding.code, *self._at_end.get(place, ())}):
                self._at_end.setdefault(place, set()).add(finding.code)
                return
        above = line if line - 1 not in self._open else self._starts.get(line, line)
        self._above.setdefault(above, set()).add(finding.code)

    def moved(self, finding: Finding) -> Finding:
        """The finding where it lies in the file with the comments."""
        span = finding.span
        line, end_line = (
            line + sum(place <= line for place in self._above)
            for line in (span.line, span.end_line)
        )
        return replace(finding, span=replace(span, line=line, end_line=end_line))

    def text(self) -> str:
        """The file with the comments."""
        lines = list(self._lines)
        for ignore, codes in sorted(
            self._more.items(), key=lambda item: item[0].span, reverse=True
        ):
            span = ignore.span
            every = [*ignore.codes, *sorted(codes.difference(ignore.codes))]
            comment = _comment(every, ignore.reason or self.reason)
            line = lines[span.line - 1]
            lines[span.line - 1] = line[: span.column] + comment + line[span.end_column :]
        for place, codes in self._at_end.items():
            line = lines[place - 1]
            body = _END.sub("", line)
            comment = _comment(sorted(codes), self.reason)
            gap = "" if body.endswith("  ") else "  "
            lines[place - 1] = f"{body}{gap}{comment}{line[len(body) :]}"
        for place, codes in self._above.items():
            line = lines[place - 1]
            blanks = line[: len(line) - len(line.lstrip(" \t"))]
            comment = _comment(sorted(codes), self.reason)
            lines[place - 1] = f"{blanks}{comment}{self._newline(place)}{line}"
        bom = "\ufeff" if self.source.startswith("\ufeff") else ""
        return bom + "".join(lines)

    def _fits(self, place: int, codes: Iterable[str]) -> bool:
        """True if a comment may stand at the end of a line."""
        if place in self._open or _DIRECTIVE.search(self._comments.get(place, "")):
            return False
        body = _END.sub("", self._lines[place - 1])
        return len(f"{body}  {_comment(sorted(codes), self.reason)}") <= self._width

    def _newline(self, place: int) -> str:
        for line in (self._lines[place - 1], *self._lines):
            end = _END.search(line)
            if end:
                return end[0]
        return "\n"


def _comment(codes: Sequence[str], reason: str) -> str:
    return f"# pallas-fix: ignore[{', '.join(codes)}] {reason}".rstrip()


def _layout(lines: Sequence[str]) -> tuple[set[int], dict[int, int], dict[int, str]]:
    """What can take a comment: the lines that end inside of a string, or with a backslash, cannot.

    With it, for each line, the one on which its statement starts, and the comments, each by its
    line.
    """
    ended: set[int] = set()
    starts: dict[int, int] = {}
    comments: dict[int, str] = {}
    start = 0
    for token in tokens("".join(lines)):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            comments[line] = token.string
        elif token.type in (tokenize.NL, tokenize.NEWLINE):
            ended.add(line)
            if token.type == tokenize.NEWLINE:
                starts.update(dict.fromkeys(range(start, line + 1), start))
                start = 0
        elif token.type not in (tokenize.INDENT, tokenize.DEDENT) and not start:
            start = line
    return set(range(1, len(lines) + 1)) - ended, starts, comments
