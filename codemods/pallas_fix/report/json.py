"""The account as a JSON document, for programs.

Keys of version 1; a later version may add keys, and a key that changes its meaning raises it.
docs/schema/pallas-fix-1.json has them as a JSON schema.

    version     1
    tool        name and version of pallas-fix
    status      exit status of the run
    written     true where files were rewritten, false with --diff, --check and standard input
    looked_at   number of files
    hardware    where kernels ran, as a sentence
    jax         what the code must run on, as words, may be empty
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
        level   'equal', 'close', 'compiled', 'lowered', 'traced', 'unverified', 'refuted' or null
        evidence, before_failed              sentences, may be empty
        stage   the strongest stage, on which the level rests, or null; targets and tools: the
                chips and the versions for which it was passed
        command what finds and verifies the same
        together  so many other fixes of the file were verified with this one
        reason  {code, text, way_out} where it was not fixed, else null
        case    the line that would have it verified, may be empty
        preview the hunks of a fix that is shown, may be empty
        notes   sentences
        cases   what the ladder saw, one for each case and target: {case, target, tools, before,
                after, compared, command}; before and after hold {stages, ran_on, hazards,
                resources}, a stage {stage, ok (null: could not be asked), seconds, error,
                message, where, cached}, compared {stage, same, close, on, inputs, message}
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pallas_fix import __version__
from pallas_fix.files import SourceError
from pallas_fix.report import statistics
from pallas_fix.report.account import Account, Entry, FileAccount
from pallas_fix.report.cases import document as case_document
from pallas_fix.report.proof import command, proof

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
        "jax": account.jax,
        "notes": account.notes,
        "statistics": statistics.document(account),
        "problems": [_problem(problem) for problem in problems],
        "files": [_file(account, file) for file in files],
    }
    return json.dumps(content, indent=2) + "\n"


def _problem(problem: SourceError) -> dict[str, Any]:
    return {"path": str(problem.path), "line": problem.line, "message": problem.message}


def _file(account: Account, file: FileAccount) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "changed": file.changed,
        "notes": file.notes,
        "hazards": [asdict(hazard) for hazard in file.hazards],
        "findings": [_finding(account, file, entry) for entry in file.located(account.written)],
    }


def _finding(account: Account, file: FileAccount, entry: Entry) -> dict[str, Any]:
    finding, verdict, reason = entry.finding, entry.verdict, entry.reason
    known = proof(account, file, entry)
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
        "stage": known.stage,
        "targets": known.targets,
        "tools": known.tools,
        "command": known.command,
        "together": known.together,
        "reason": {"code": reason.code, "text": reason.text, "way_out": reason.way_out}
        if reason
        else None,
        "case": entry.case,
        "preview": entry.preview.decode(file.source.encoding, "replace"),
        "notes": finding.notes,
        "cases": [case_document(case, command(account, file.path, case)) for case in verdict.cases]
        if verdict
        else [],
    }
