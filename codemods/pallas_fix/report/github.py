"""The account as workflow commands of GitHub Actions: an annotation for each finding.

A runner reads them from the log of a step, one a line. Their values are escaped as its toolkit
does it (actions/toolkit, packages/core/src/command.ts).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pallas_fix.edits import Span
from pallas_fix.files import SourceError
from pallas_fix.report.account import Account, Entry, FileAccount
from pallas_fix.report.cases import hazard_line
from pallas_fix.report.places import in_tree
from pallas_fix.report.printable import inert, printable
from pallas_fix.report.proof import Severity, facts, severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def document(account: Account) -> str:
    """The commands, one a line; empty where there is nothing to say."""
    return "".join(f"{line}\n" for line in _lines(account))


def _lines(account: Account) -> Iterator[str]:
    problems = [*account.problems, *(file.problem for file in account.files if file.problem)]
    for problem in problems:
        yield _problem(problem)
    for file in account.files:
        for entry in file.located(account.written):
            yield _entry(account, file, entry)
        for hazard in file.hazards:
            name = "error" if hazard.serious else "notice"
            yield _command(name, {"file": in_tree(file.path)}, hazard_line(hazard))
        for note in file.notes:
            yield _command("notice", {"file": in_tree(file.path)}, note)
    for note in account.notes:
        yield _command("notice", {}, note)


def _problem(problem: SourceError) -> str:
    place = {"file": in_tree(problem.path)}
    if problem.line:
        place["line"] = str(problem.line)
    return _command("error", place, problem.message)


def _entry(account: Account, file: FileAccount, entry: Entry) -> str:
    finding = entry.finding
    told = [finding.message, *map(str, facts(account, file, entry))]
    place = _place(file.path, finding.span) | {"title": f"{finding.code} {entry.rule}"}
    return _command(_COMMANDS[severity(account, entry)], place, *told)


def _place(path: Path, span: Span) -> dict[str, str]:
    """Where an annotation stands; columns are for those of one line only."""
    place = {"file": in_tree(path), "line": str(span.line), "endLine": str(span.end_line)}
    if span.line == span.end_line:
        place |= {"col": str(span.column + 1), "endColumn": str(span.end_column + 1)}
    return place


def _command(name: str, properties: dict[str, str], *lines: str) -> str:
    """One command; nothing in its values can end it, or begin another."""
    properties = {"title": "pallas-fix", **properties}
    told = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {told}::{_data(chr(10).join(map(_shown, lines)))}"


def _shown(line: str) -> str:
    return inert(printable(line))


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(inert(printable(text))).replace(":", "%3A").replace(",", "%2C")
