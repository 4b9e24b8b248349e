"""Comments by which a file keeps rules away: `# pallas-fix: ignore[CODE] reason`, `skip-file`."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from pallas_fix.edits import Span
from pallas_fix.facts import Facts
from pallas_fix.facts.comments import tokens
from pallas_fix.pyproject import nearest
from pallas_fix.rules.base import Finding, Reason, Rule

_SKIP = re.compile(rb"(?:[^\r\n]*(?:\r\n|\r|\n)){0,9}[ \t]*#[ \t]*pallas-fix:[ \t]*skip-file\b")
# On one line there may be several: `# type: ignore  # pallas-fix: ignore[X] reason  # pragma: ...`.
_OTHER = r"(?=\s+#(?:\s|noqa\b|type:|fmt:|pylint:|pyright:)|\s*$)"
_COMMENT = re.compile(r"(?<!\S)#\s*pallas-fix:\s*(?P<word>[\w-]*)(?P<rest>.*?)" + _OTHER)
_CODES = re.compile(r"\s*\[(?P<codes>[^\]]*)\]\s*(?P<reason>.*)")
_WORDS = ("case", "ignore", "skip-file")
_BLANK = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


@dataclass(frozen=True, slots=True)
class Ignore:
    """One `# pallas-fix: ignore[CODE, ...] reason`.

    `span` is its place, which may be a part of a comment. `first` and `last` are the lines that it
    speaks of: its own where it follows code, else those of the statement below it. There is no
    such statement where `last` is less than `first`.
    """

    span: Span
    codes: tuple[str, ...]
    reason: str
    first: int
    last: int

    def covers(self, finding: Finding) -> bool:
        """True if the finding begins or ends on one of these lines."""
        return any(
            self.first <= line <= self.last for line in (finding.span.line, finding.span.end_line)
        )

    def hides(self, finding: Finding) -> bool:
        """True if the finding is to be left alone."""
        return bool(self.codes) and finding.code.startswith(self.codes) and self.covers(finding)


@dataclass(frozen=True, slots=True)
class Comments:
    """The ignores of a text, and the words, each with its line, that stand after `pallas-fix:`."""

    ignores: tuple[Ignore, ...] = ()
    words: tuple[tuple[int, str], ...] = ()


def skips_file(data: bytes) -> bool:
    """True if one of the first ten lines is a comment `# pallas-fix: skip-file`."""
    return b"skip-file" in data and _SKIP.match(data) is not None


def wrong(text: str, known: Collection[str]) -> Iterator[tuple[int, str]]:
    """What the comments of a text say that cannot be followed: a line and a message for each.

    `known` are the codes of all rules.
    """
    found = read(text)
    told = [(line, _wrong_word(word)) for line, word in found.words]
    for ignore in found.ignores:
        line = ignore.span.line
        if not ignore.codes:
            example = f"# pallas-fix: ignore[{min(known, default='CODE')}] reason"
            what = f"an ignore names the codes of the rules that it is about: {example}"
            told.append((line, what))
        told += (
            (line, f"no rule is called {code!r}{nearest(code, known)}")
            for code in ignore.codes
            if not any(rule.startswith(code) for rule in known)
        )
    yield from sorted((line, what) for line, what in told if what)


def _wrong_word(word: str) -> str:
    if word == "skip-file":
        return "`skip-file` has no effect here: give it one of the first ten lines"
    if word in _WORDS:
        return ""
    hint = nearest(word, _WORDS) or f"; write {', '.join(_WORDS[:-1])} or {_WORDS[-1]}"
    return f"`# pallas-fix: {word}` means nothing{hint}"


@lru_cache(maxsize=4)
def read(text: str) -> Comments:
    """The comments of a text that speak to pallas-fix, as far as it can be split into tokens."""
    if "pallas-fix:" not in text:
        return Comments()
    reader = _Reader()
    try:
        for token in tokens(text):
            reader.take(token)
    except (tokenize.TokenError, SyntaxError):
        pass
    return reader.comments()


class _Reader:
    """Goes through the tokens of a file."""

    def __init__(self) -> None:
        self._ignores: list[Ignore] = []
        self._words: list[tuple[int, str]] = []
        self._waiting: list[Ignore] = []
        self._above: list[Ignore] = []
        self._code_line = 0
        self._comment_line = 0
        self._starts = True
        self._decorated = False

    def comments(self) -> Comments:
        left = [replace(ignore, last=ignore.first - 1) for ignore in self._waiting]
        ignores = sorted([*self._ignores, *self._above, *left], key=lambda ignore: ignore.span)
        return Comments(tuple(ignores), tuple(self._words))

    def take(self, token: tokenize.TokenInfo) -> None:
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            self._comment(token.string, line, token.start[1])
        elif token.type == tokenize.NL and self._comment_line != line != self._code_line:
            # An empty line: what stands above it is about nothing below it.
            self._ignores += (replace(each, last=each.first - 1) for each in self._waiting)
            self._waiting = []
        elif token.type == tokenize.NEWLINE:
            self._statement_ends(line)
        elif token.type not in _BLANK:
            self._code(token.string, line, token.end[0])

    def _comment(self, comment: str, line: int, column: int) -> None:
        own = self._code_line != line
        self._comment_line = line
        for match in _COMMENT.finditer(comment):
            word = match["word"]
            if word != "ignore":
                if match.start() == 0:
                    self._words.append((line, word))
                continue
            codes = _CODES.fullmatch(match["rest"])
            span = Span(line, column + match.start(), line, column + match.end())
            named = tuple(codes["codes"].replace(",", " ").split()) if codes else ()
            ignore = Ignore(span, named, codes["reason"] if codes else "", line, line)
            (self._waiting if own else self._ignores).append(ignore)

    def _code(self, string: str, line: int, end_line: int) -> None:
        if self._starts:
            if not self._decorated:
                self._above = []
            self._decorated = string == "@"
        for ignore in self._waiting:
            covering = replace(ignore, first=line, last=end_line)
            (self._above if self._starts else self._ignores).append(covering)
        self._waiting = []
        self._starts = False
        self._code_line = end_line

    def _statement_ends(self, line: int) -> None:
        """The line of code is complete; that of a decorator goes on with what it decorates."""
        self._starts = True
        self._above = [replace(ignore, last=line) for ignore in self._above]
        if not self._decorated:
            self._ignores += self._above
            self._above = []


def heeding(rule: Rule, no_fix: Reason | None = None) -> Rule:
    """`rule`, silent about findings that the file says to ignore.

    With `no_fix`, its findings come with that reason in the place of a fix.
    """

    class Heeding(Rule):
        code = rule.code
        name = rule.name
        triggers = rule.triggers
        messages = rule.messages
        applies = rule.applies

        def concerns(self, text: str) -> bool:
            return rule.concerns(text)

        def find(self, module: Facts) -> Iterator[Finding]:
            ignores = read(module.text).ignores
            for finding in rule.findings(module):
                if any(ignore.hides(finding) for ignore in ignores):
                    continue
                yield (
                    replace(finding, fix=None, reason=no_fix) if no_fix and finding.fix else finding
                )

    return Heeding(rule.options)
