"""The account in the Reviewdog Diagnostic Format, for comments on a pull request.

What a run would write comes as one suggestion for each fix: whole lines in one piece, from the
first to the last one that the fix changes. Accepting it makes all of this fix and no other. A fix
that would not be written is a diff in the message.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pallas_fix.edits import Span
from pallas_fix.files import SourceError
from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.report.cases import hazard_line
from pallas_fix.report.markup import code, fenced, hunk_lines, markdown
from pallas_fix.report.places import from_here
from pallas_fix.report.proof import NOT_ALONE, Severity, facts, severity
from pallas_fix.report.regions import LineChange, line_change

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}
_NEWLINE = re.compile(r"\r\n|\r|\n")
_MOST_LINES = 200
"""So many lines of a diff stand in a message: a comment has an end."""


def document(account: Account) -> str:
    """The account as the JSON text of a DiagnosticResult, ended by a newline."""
    problems = [*account.problems, *(file.problem for file in account.files if file.problem)]
    diagnostics = [_problem(problem) for problem in problems]
    for file in account.files:
        text = file.after if account.written else file.source.text
        lines = _NEWLINE.split(text)
        diagnostics += [
            _entry(account, file, entry, lines) for entry in file.located(account.written)
        ]
        diagnostics += [
            _diagnostic(file.path, hazard_line(hazard), "ERROR" if hazard.serious else "INFO")
            for hazard in file.hazards
        ]
        diagnostics += [_diagnostic(file.path, note, "INFO") for note in file.notes]
    content = {"source": {"name": "pallas-fix"}, "diagnostics": diagnostics}
    return json.dumps(content, indent=2) + "\n"


def _problem(problem: SourceError) -> dict[str, Any]:
    content = _diagnostic(problem.path, problem.message, "ERROR")
    if problem.line:
        content["location"]["range"] = {"start": {"line": problem.line}}
    return content


def _diagnostic(path: Path, message: str, severity: str) -> dict[str, Any]:
    return {
        "message": markdown(f"pallas-fix: {message}"),
        "location": {"path": _name(path)},
        "severity": severity,
    }


def _entry(account: Account, file: FileAccount, entry: Entry, lines: list[str]) -> dict[str, Any]:
    finding = entry.finding
    change = _change(file, entry) if _would_write(account, entry) else None
    content: dict[str, Any] = {
        "message": _message(account, file, entry, change),
        "location": {"path": _name(file.path), "range": _range(finding.span, lines)},
        "severity": _SEVERITIES[severity(account, entry)],
        "code": {"value": finding.code},
    }
    if change is not None:
        # Comments with a suggestion stand at the lines that it changes, and no other ones.
        place = {"start": {"line": change.first}, "end": {"line": change.last}}
        content["location"]["range"] = place
        content["suggestions"] = [{"range": place, "text": change.text}]
    return content


def _message(account: Account, file: FileAccount, entry: Entry, change: LineChange | None) -> str:
    span = entry.finding.span
    told = [f"{entry.rule} (line {span.line}): {markdown(entry.finding.message)}"]
    known = [*facts(account, file, entry)]
    if change is None and _would_write(account, entry):
        known.append(NOT_ALONE)
    for fact in known:
        text = code(fact.text) if fact.is_code else markdown(fact.text)
        told.append(f"{fact.word}: {text}")
    if entry.state is State.SHOWN and entry.preview:
        diff = hunk_lines([entry.preview], file.source.encoding)
        told += ["", fenced(diff[:_MOST_LINES], "diff")]
    return "\n".join(told)


def _would_write(account: Account, entry: Entry) -> bool:
    return entry.state is State.FIXED and not account.written


def _change(file: FileAccount, entry: Entry) -> LineChange | None:
    text = entry.alone()
    return None if text is None else line_change(file.source.text, text)


def _range(span: Span, lines: list[str]) -> dict[str, Any]:
    """A span with columns that count bytes of UTF-8, as the format wants it."""

    def position(line: int, column: int) -> dict[str, int]:
        before = lines[line - 1][:column] if line <= len(lines) else ""
        return {"line": line, "column": len(before.encode("utf-8", "surrogatepass")) + 1}

    return {
        "start": position(span.line, span.column),
        "end": position(span.end_line, span.end_column),
    }


def _name(path: Path) -> str:
    """The path; bytes that are no text are replaced, as JSON has no word for them."""
    return from_here(path).encode("utf-8", "replace").decode("utf-8")
