"""The account as SARIF 2.1.0, for code scanning and editors.

One result for each finding. What a run has not written, and would write, comes as a fix: exact
replacements that make this fix and no other. `properties` of a result say how the fix is known:

    state        fixed, shown (there is a fix that would not be written), not fixed
    reason       the code of the reason why it is not fixed
    verdict      equal, close, compiled, lowered, traced, unverified, refuted
    stage        the strongest stage, `targets` and `tools` the chips and versions
    evidence     a sentence, `beforeFailed` the error of the file before
    command      what finds and verifies the same
    together     so many other fixes of the file were verified with this one
    case         the line that would have it verified, `preview` the diff of a fix that is shown
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pallas_fix import __version__
from pallas_fix.edits import Span
from pallas_fix.explain import page
from pallas_fix.files import SourceError
from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.report.cases import hazard_line
from pallas_fix.report.places import in_tree
from pallas_fix.report.printable import printable
from pallas_fix.report.proof import NOT_ALONE, facts, outcome, proof, severity
from pallas_fix.report.regions import replacements
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Rule
from pallas_fix.sieve import key

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_ROOT = "SRCROOT"


def document(account: Account) -> str:
    """The account as the text of a SARIF log, ended by a newline."""
    codes = sorted({entry.finding.code for entry in account.entries})
    run = {
        "tool": {"driver": _driver(codes)},
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "originalUriBaseIds": {
            _ROOT: {
                "description": {
                    "text": "The top of the git work tree, else the folder that the run was in."
                }
            }
        },
        "invocations": [
            {
                "executionSuccessful": account.status < 2,
                "exitCode": account.status,
                "toolExecutionNotifications": list(_notifications(account)),
            }
        ],
        "results": [result for file in account.files for result in _results(account, file, codes)],
        "properties": {"hardware": account.hardware, "lookedAt": account.looked_at},
    }
    content = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(content, indent=2) + "\n"


def _driver(codes: Iterable[str]) -> dict[str, Any]:
    known = all_rules()
    return {
        "name": "pallas-fix",
        "version": __version__,
        "rules": [_rule(code, known.get(code)) for code in codes],
        "notifications": [
            {
                "id": "problem",
                "shortDescription": {"text": "A file that cannot be read, parsed or written."},
            },
            {
                "id": "hazard",
                "shortDescription": {"text": "What the emulator saw, and no compiler sees."},
            },
            {"id": "note", "shortDescription": {"text": "A note about the run."}},
        ],
    }


def _rule(code: str, rule: type[Rule] | None) -> dict[str, Any]:
    if rule is None:
        return {"id": code}
    text = page(rule)
    summary = (inspect.getdoc(rule) or "").partition("\n\n")[0]
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": " ".join(summary.split())},
        "fullDescription": {"text": f"{' '.join(summary.split())} Applies to jax {rule.applies}."},
        "help": {"text": text, "markdown": text},
        "properties": {"tags": ["jax", "pallas"], "jax": str(rule.applies)},
    }


def _results(account: Account, file: FileAccount, codes: list[str]) -> Iterator[dict[str, Any]]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for entry in file.located(account.written):
        finding = entry.finding
        seen[key(finding)] += 1
        offered = entry.state is State.FIXED and not account.written
        fix = _fix(account, file, entry) if offered else None
        known = [*facts(account, file, entry), *([NOT_ALONE] if offered and not fix else [])]
        result = {
            "ruleId": finding.code,
            "ruleIndex": codes.index(finding.code),
            "level": severity(account, entry),
            "message": {"text": "\n".join(map(_plain, [finding.message, *map(str, known)]))},
            "locations": [_location(file.path, finding.span, finding.function)],
            "partialFingerprints": {"pallasFix/v1": _fingerprint(entry, seen[key(finding)])},
            "properties": _properties(account, file, entry),
        }
        yield {**result, "fixes": [fix]} if fix else result


_LINK = re.compile(r"\](?=\()")


def _plain(text: str) -> str:
    """Text in which a viewer finds no link (SARIF 2.1.0, 3.11.6)."""
    return _LINK.sub(r"\\]", printable(text))


def _location(path: Path, span: Span | None, function: str = "") -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(path)}
    if span is not None:
        physical["region"] = {
            "startLine": span.line,
            "startColumn": span.column + 1,
            "endLine": span.end_line,
            "endColumn": span.end_column + 1,
        }
    location: dict[str, Any] = {"physicalLocation": physical}
    if function:
        location["logicalLocations"] = [{"fullyQualifiedName": function}]
    return location


def _artifact(path: Path) -> dict[str, str]:
    name = in_tree(path)
    if name.startswith("/") or Path(name).is_absolute():
        return {"uri": Path(name).as_uri()}
    return {"uri": quote(name, errors="surrogateescape"), "uriBaseId": _ROOT}


def _fingerprint(entry: Entry, number: int) -> str:
    """What stays the same when lines move: rule, function, message, and which one of these."""
    words = "\0".join((*key(entry.finding), str(number)))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _properties(account: Account, file: FileAccount, entry: Entry) -> dict[str, Any]:
    known = proof(account, file, entry)
    fix, verdict, reason = entry.finding.fix, entry.verdict, entry.reason
    content = {
        "state": entry.state,
        "certain": fix.certain if fix else None,
        "reason": reason.code if reason else None,
        "wayOut": reason.way_out if reason else None,
        "verdict": verdict.level if verdict else None,
        "evidence": verdict.evidence if verdict else None,
        "beforeFailed": verdict.before_failed if verdict else None,
        "stage": known.stage,
        "targets": list(known.targets),
        "tools": [f"pallas-fix {__version__}", *known.tools],
        "command": known.command,
        "together": known.together,
        "case": entry.case,
        "preview": entry.preview.decode(file.source.encoding, "replace"),
    }
    return {name: value for name, value in content.items() if value not in (None, "")}


def _fix(account: Account, file: FileAccount, entry: Entry) -> dict[str, Any] | None:
    """The fix that the run would write, by itself."""
    text = entry.alone()
    if text is None:
        return None
    made = [
        {
            "deletedRegion": {
                "startLine": one.line,
                "startColumn": one.column,
                "endLine": one.end_line,
                "endColumn": one.end_column,
            },
            "insertedContent": {"text": one.text},
        }
        for one in replacements(file.source.text, text)
    ]
    _, how = outcome(account, entry)
    return {
        "description": {"text": _plain(how)},
        "artifactChanges": [{"artifactLocation": _artifact(file.path), "replacements": made}],
    }


def _notifications(account: Account) -> Iterator[dict[str, Any]]:
    problems = [*account.problems, *(file.problem for file in account.files if file.problem)]
    for problem in problems:
        yield {**_notification("problem", "error", problem.message), "locations": [_at(problem)]}
    for file in account.files:
        for hazard in file.hazards:
            level = "error" if hazard.serious else "note"
            told = _notification("hazard", level, hazard_line(hazard))
            yield {**told, "locations": [_location(file.path, None)]}
        for note in file.notes:
            told = _notification("note", "note", note)
            yield {**told, "locations": [_location(file.path, None)]}
    for note in account.notes:
        yield _notification("note", "note", note)


def _notification(name: str, level: str, text: str) -> dict[str, Any]:
    return {"descriptor": {"id": name}, "level": level, "message": {"text": _plain(text)}}


def _at(problem: SourceError) -> dict[str, Any]:
    location = _location(problem.path, None)
    if problem.line:
        location["physicalLocation"]["region"] = {"startLine": problem.line}
    return location
