"""The account in markdown, for the summary of a job on GitHub.

What comes from files and errors stands in blocks of HTML or of code, and is escaped for them. A
summary that would be too large loses its diffs first, then findings, and says how many.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from pallas_fix.files import SourceError
from pallas_fix.report import statistics
from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.report.cases import hazard_line
from pallas_fix.report.diff import hunks
from pallas_fix.report.markup import cell, fenced, html, html_code, hunk_lines
from pallas_fix.report.proof import NOT_ALONE, Fact, command, facts

LIMIT = 1024 * 1024
"""Bytes of a summary that GitHub takes."""

_TAIL = 4096
"""Bytes that are kept for the last lines."""

_MOST_LINES = 400
"""So many lines of one diff are shown."""

_MOST_COMMANDS = 10
"""So many files have a command at the end; each finding has its own anyway."""


def document(account: Account) -> str:
    """The account in markdown, within `LIMIT` bytes."""
    page = _Page(LIMIT - _TAIL)
    page.add("# pallas-fix\n", *_summary(account), *_table(account))
    titles = {
        State.NOT_FIXED: "Not fixed",
        State.SHOWN: "Fixes that are not written",
        State.FIXED: "Fixed" if account.written else "Would be fixed",
    }
    _problems(account, page)
    for state, title in titles.items():
        _section(account, state, title, page)
    _hazards(account, page)
    _notes(account, page)
    _commands(account, page)
    return page.text(f"<p>{html(account.hardware)}</p>\n")


class _Page:
    """Parts of a document, as many as there is room for."""

    def __init__(self, room: int) -> None:
        self._parts: list[str] = []
        self._room = room
        self._left_out = 0

    def add(self, *parts: str) -> None:
        """Add parts if there is room for all of them."""
        if not self._take(parts):
            self._left_out += 1

    def add_one_of(self, full: str, short: str) -> None:
        """Add the first of two that there is room for."""
        if not self._take((full,)) and not self._take((short,)):
            self._left_out += 1

    def text(self, last: str) -> str:
        """The document; `last` is at its end."""
        parts = self._parts
        if self._left_out:
            parts.append(
                f"<p>{self._left_out} more had no room here: <code>--output json=FILE</code> "
                "has all of it.</p>\n"
            )
        return "\n".join([*parts, last])

    def _take(self, parts: tuple[str, ...]) -> bool:
        size = sum(len(part.encode()) + 1 for part in parts)
        if size > self._room:
            return False
        self._parts += parts
        self._room -= size
        return True


def _summary(account: Account) -> Iterator[str]:
    fixed, left = account.of(State.FIXED), account.of(State.SHOWN, State.NOT_FIXED)
    told = []
    if fixed:
        told.append(f"**{len(fixed)} {'fixed' if account.written else 'would be fixed'}**")
    if left:
        told.append(f"**{len(left)} not fixed**")
    problems = len(account.problems) + sum(file.problem is not None for file in account.files)
    if problems:
        told.append(f"**{problems} {'problem' if problems == 1 else 'problems'}**")
    files = "file" if account.looked_at == 1 else "files"
    what = ", ".join(told) or "Nothing found"
    yield f"{what} in {account.looked_at} {files}.\n"
    if account.interrupted:
        yield "The run was interrupted: the rest was not looked at.\n"


def _table(account: Account) -> Iterator[str]:
    rows = statistics.rows(account)
    if not rows:
        return
    lines = ["| Rule | Name | Outcome | Verdict or reason | Count |", "|---|---|---|---|--:|"]
    for row in rows:
        cells = [row.code, row.name, statistics.words(account, row), row.detail, str(row.count)]
        lines.append(f"| {' | '.join(map(cell, cells))} |")
    yield "\n".join([*lines, ""])


def _problems(account: Account, page: _Page) -> None:
    problems = [*account.problems, *(file.problem for file in account.files if file.problem)]
    if problems:
        page.add("## Problems\n")
    for problem in problems:
        page.add(_problem(problem))


def _problem(problem: SourceError) -> str:
    place = f"{problem.path}:{problem.line}" if problem.line else str(problem.path)
    return f"<p>{html_code(place)}: {html(problem.message)}</p>\n"


def _section(account: Account, state: State, title: str, page: _Page) -> None:
    found = [
        (file, entry)
        for file in account.files
        for entry in file.located(account.written)
        if entry.state is state
    ]
    if found:
        page.add(f"## {title}\n")
    for file, entry in found:
        head = _head(file, entry)
        known = [*facts(account, file, entry)]
        diff = _diff(file, entry)
        if diff is None and state is State.FIXED:
            known.append(NOT_ALONE)
        told = _list(known)
        short = _details(head, told)
        page.add_one_of(_details(head, f"{told}\n{diff}\n") if diff else short, short)


def _details(head: str, body: str) -> str:
    return f"<details><summary>{head}</summary>\n\n{body}\n</details>\n"


def _head(file: FileAccount, entry: Entry) -> str:
    finding = entry.finding
    place = f"{file.path}:{finding.span.line}:{finding.span.column + 1}"
    known = entry.reason.code if entry.reason else entry.verdict.level if entry.verdict else ""
    level = f" — <b>{html(known)}</b>" if known else ""
    return f"{html_code(place)} {html(finding.code)}: {html(finding.message)}{level}"


def _list(known: list[Fact]) -> str:
    lines = [
        f"<li>{html(fact.word)}: {html_code(fact.text) if fact.is_code else html(fact.text)}</li>"
        for fact in known
    ]
    return "\n".join(["<ul>", *lines, "</ul>", ""])


def _diff(file: FileAccount, entry: Entry) -> str | None:
    """What this fix alone changes, as a diff; None where there is none."""
    encoding = file.source.encoding
    if entry.state is State.FIXED:
        text = entry.alone()
        made = [] if text is None else [*hunks(file.source.data, file.source.encode(text))]
    else:
        made = [entry.preview] if entry.preview else []
    if not made:
        return None
    lines = hunk_lines(made, encoding)
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"@@ {len(lines) - _MOST_LINES} more lines @@"]
    return fenced(lines, "diff")


def _hazards(account: Account, page: _Page) -> None:
    hazards = [hazard for file in account.files for hazard in file.hazards]
    if hazards:
        page.add("## What the emulator saw\n")
    for hazard in hazards:
        page.add(f"<p>{html(hazard_line(hazard))}</p>\n")


def _notes(account: Account, page: _Page) -> None:
    for file in account.files:
        for note in file.notes:
            page.add(f"<p>{html_code(str(file.path))}: {html(note)}</p>\n")
    for note in account.notes:
        page.add(f"<p>{html(note)}</p>\n")


def _commands(account: Account, page: _Page) -> None:
    """How to see it all again, a line for each file."""
    files = [file for file in account.files if file.entries]
    lines = [shlex.join(command(account, file.path)) for file in files[:_MOST_COMMANDS]]
    if lines:
        page.add("## How to see it again\n", fenced(lines, "sh"), "")
