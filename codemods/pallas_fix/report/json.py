"""The account as a JSON document, for programs.

Keys of version 1; a later version may add keys, and a key that changes its meaning raises it.

    version     1
    tool        name and version of pallas-fix
    status      exit status of the run
    written     true where files were rewritten, false with --diff, --check and standard input
    looked_at   number of files
    hardware    where kernels ran, as a sentence
    notes       sentences about the run
    statistics  how many findings there are, the largest count first: {code, name, state, detail,
                count}; detail is the level of a fix, or the code of the reason why there is none
    problems    what could not be read, parsed or written: {path, line or null, message}
    files       those with findings or changes:
      path      as it was found
      changed   true where the run writes the file, or would
      notes     sentences about the file
      hazards   what the emulator saw in the file as the run leaves it: {kind, serious, where,
                count, message}
      findings  one for each place, in the order of the file:
        code, name, message, function
        line, column, end_line, end_column   of the file as the run leaves it; columns from 1
        state   'fixed', 'shown' (there is a fix, not written) or 'not fixed'
        certain true or false; null where there is no fix
        level   'equal', 'compiled', 'lowered', 'traced', 'unverified', 'refuted' or null
        evidence, before_failed              sentences, may be empty
        reason  {code, text, way_out} where it was not fixed, else null
        case    the line that would have it verified, may be empty
        notes   sentences
        cases   what the ladder saw, one for each case and target: {case, target, tools, before,
                after, compared, command}; before and after hold {stages, ran_on, hazards,
                resources}, a stage {stage, ok (null: could not be asked), seconds, error,
                message, where, cached}, compared {stage, same, close, on, inputs, message}
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pallas_fix import __version__
from pallas_fix.files import SourceError
from pallas_fix.report import statistics
from pallas_fix.report.account import Account, Entry, FileAccount
from pallas_fix.report.cases import document as case_document
from pallas_fix.verify.verdict import CaseResult

VERSION = 1


def document(account: Account) -> str:
    """The account as JSON text, ended by a newline."""
    files = [file for file in account.files if file.entries or not file.problem]
    problems = [*account.problems, *(file.problem for file in account.files if file.problem)]
    content = {
        "version": VERSION,
        "tool": f"pallas-fix {__version__}",
        "status": account.status,
        "written": account.written,
        "looked_at": account.looked_at,
        "hardware": account.hardware,
        "notes": account.notes,
        "statistics": statistics.document(account),
        "problems": [_problem(problem) for problem in problems],
        "files": [_file(file, account.written) for file in files],
    }
    return json.dumps(content, indent=2) + "\n"


def _problem(problem: SourceError) -> dict[str, Any]:
    return {"path": str(problem.path), "line": problem.line, "message": problem.message}


def _file(file: FileAccount, written: bool) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "changed": file.changed,
        "notes": file.notes,
        "hazards": [asdict(hazard) for hazard in file.hazards],
        "findings": [_finding(file.path, entry) for entry in file.located(written)],
    }


def _finding(path: Path, entry: Entry) -> dict[str, Any]:
    finding, verdict, reason = entry.finding, entry.verdict, entry.reason
    span = finding.span
    return {
        "code": finding.code,
        "name": entry.rule,
        "message": finding.message,
        "function": finding.function,
        "line": span.line,
        "column": span.column + 1,
        "end_line": span.end_line,
        "end_column": span.end_column + 1,
        "state": entry.state,
        "certain": finding.fix.certain if finding.fix else None,
        "level": verdict.level if verdict else None,
        "evidence": verdict.evidence if verdict else "",
        "before_failed": verdict.before_failed if verdict else "",
        "reason": {"code": reason.code, "text": reason.text, "way_out": reason.way_out}
        if reason
        else None,
        "case": entry.case,
        "notes": finding.notes,
        "cases": [case_document(case, _command(path, case)) for case in verdict.cases]
        if verdict
        else [],
    }


def _command(path: Path, case: CaseResult) -> list[str]:
    """What shows this case again, before and after."""
    words = ["pallas-fix", "apply", "--diff", "--no-cache", "-v"]
    if case.is_command:
        return [*words, "--run", case.case.removeprefix("$ "), str(path)]
    return [*words, "--case", f"{case.case.partition(' @ ')[0]} @ {case.target}", str(path)]
