"""Which findings of a file count: those on changed lines that no baseline knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pallas_fix.edits import (
    AddImport,
    AddParameter,
    InsertAfter,
    InsertBefore,
    InsertFirst,
    Located,
    MoveIntoScope,
    NameArgument,
    RemoveArgument,
    RemoveDecorator,
    RemoveElement,
    RemoveParameter,
    RenameParameter,
)
from pallas_fix.facts import Facts
from pallas_fix.ranges import EVERY, Lines, hunks_between
from pallas_fix.rules.base import Finding, Rule

Key = tuple[str, str, str]
"""Code, function and message of a finding: what names it when lines move."""

_LINE = re.compile(r"\bline \d+")


def key(finding: Finding) -> Key:
    """What names a finding in a baseline."""
    return finding.code, finding.function, _LINE.sub("line N", finding.message)


@dataclass
class Sieve:
    """Lets through the findings of one file that count.

    `text` is the file as it was read, `lines` those of its lines that changed, `known` how many
    findings of each key a baseline knows. Where there are more of a key than it knows, all of them
    count, for nobody can tell which are new. After a pass of fixes, `found` has the keys in `text`,
    and `unchanged` is the number of findings that were left out for their lines.
    """

    text: str
    lines: Lines = EVERY
    known: Mapping[Key, int] = field(default_factory=dict)
    found: Counter[Key] = field(default_factory=Counter)
    unchanged: int = 0

    def through(self, rule: Rule) -> Rule:
        """`rule`, with the findings that count."""
        sieve = self

        class Sieved(Rule):
            code = rule.code
            name = rule.name
            triggers = rule.triggers
            messages = rule.messages
            applies = rule.applies

            def concerns(self, text: str) -> bool:
                return rule.concerns(text)

            def find(self, module: Facts) -> Iterator[Finding]:
                yield from sieve._counting(module, list(rule.findings(module)))

        return Sieved(rule.options)

    def _counting(self, module: Facts, findings: list[Finding]) -> Iterator[Finding]:
        first = module.text == self.text
        if first:
            self.found.update(map(key, findings))
        lines = self.lines if first else _carried(self.lines, self.text, module.text)
        for finding in findings:
            name = key(finding)
            if name in self.known and self.found[name] <= self.known[name]:
                continue
            if not _touched(finding, lines):
                self.unchanged += first
                continue
            yield finding


@lru_cache(maxsize=2)
def _carried(lines: Lines, before: str, after: str) -> Lines:
    return lines if lines == EVERY else lines.carried(hunks_between(before, after), all_new=True)


def _touched(finding: Finding, lines: Lines) -> bool:
    """True if the finding, or an edit of its fix, is on one of the lines."""
    places = [(finding.span.line, finding.span.end_line)]
    edits = finding.fix.edits if finding.fix else ()
    # An import that is added is on no line that could have changed.
    places += (_place(edit) for edit in edits if not isinstance(edit, AddImport))
    return any(lines.touch(first, last) for first, last in places)


def _place(edit: Located) -> tuple[int, int]:
    """The first and the last line of what an edit changes."""
    match edit:
        case (
            NameArgument(_, span)
            | RemoveArgument(_, span)
            | RemoveElement(_, span)
            | RemoveDecorator(_, span)
        ):
            return span.line, span.end_line
        case (
            AddParameter() | RemoveParameter() | RenameParameter() | InsertFirst() | InsertBefore()
        ):
            return edit.span.line, edit.span.line
        case InsertAfter(span):
            return span.end_line, span.end_line
        case MoveIntoScope(span):
            first, last = edit.first or span, edit.last or span
            return first.line, last.end_line
        case _:
            return edit.span.line, edit.span.end_line
