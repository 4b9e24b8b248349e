"""How a finding is known and what became of it, for every report in the same words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.verify.verdict import CaseResult, Level, Stage, Verdict


class Severity(StrEnum):
    """How much a finding asks of who reads it."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Proof:
    """What stands behind one entry.

    `stage` is the strongest one: that which the verdict rests on, or which refuted the fix; None
    where nothing was seen. `targets` and `tools` (`jax 0.12.0.1`) are those of the cases that came
    so far, `command` shows it all again. `together` counts the other fixes of the file that were
    verified with this one.
    """

    stage: Stage | None
    targets: tuple[str, ...]
    tools: tuple[str, ...]
    command: str
    together: int


@dataclass(frozen=True)
class Fact:
    """Something to be said of an entry: a word, and a sentence, a command or a line of code."""

    word: str
    text: str
    is_code: bool = False

    def __str__(self) -> str:
        return f"{self.word}: {self.text}"


NOT_ALONE = Fact(
    "by itself", "it goes only with another fix of this file; `pallas-fix apply` makes both"
)
"""What is said of a fix for which a format has no text of its own."""

_STAGES = {
    Level.COMPILED: Stage.COMPILE,
    Level.LOWERED: Stage.LOWER,
    Level.TRACED: Stage.TRACE,
}


def proof(account: Account, file: FileAccount, entry: Entry) -> Proof:
    """The proof of one entry of a file."""
    verdict = entry.verdict
    stage = _stage(verdict) if verdict else None
    cases = [case for case in verdict.cases if _reached(case, stage)] if verdict else []
    others = [other for other in file.entries if other.state is State.FIXED and _verified(other)]
    return Proof(
        stage,
        tuple(dict.fromkeys(case.target for case in cases if not case.is_command)),
        tuple(dict.fromkeys(tool for case in cases for tool in case.tools)),
        shlex.join(command(account, file.path, *_one_each(cases))),
        len(others) - 1 if entry.state is State.FIXED and _verified(entry) else 0,
    )


def command(account: Account, path: Path, *cases: CaseResult) -> list[str]:
    """What finds and verifies the same in the file at `path`, with these cases."""
    words = ["pallas-fix", "apply", "--diff", *account.options]
    if account.verified:
        words += ["--no-cache", "-v"]
    for case in cases:
        if case.is_command:
            words += ["--run", case.case.removeprefix("$ ")]
        else:
            words += ["--case", f"{case.case.partition(' @ ')[0]} @ {case.target}"]
    name = str(path)
    return [*words, f"./{name}" if name.startswith("-") else name]


def severity(account: Account, entry: Entry) -> Severity:
    """A note where it is done; a warning where the file as it is was seen to work; else an error.

    A comment makes nothing fail either.
    """
    if entry.state is State.FIXED and account.written:
        return Severity.NOTE
    fix, verdict = entry.finding.fix, entry.verdict
    seen = verdict is not None and _stage(verdict) is not None and not verdict.before_failed
    works = seen and verdict is not None and verdict.level is not Level.REFUTED
    return Severity.WARNING if works or (fix and fix.only_comments) else Severity.ERROR


def outcome(account: Account, entry: Entry) -> tuple[str, str]:
    """What became of a finding, in a word or two, and why in a sentence."""
    verdict, reason = entry.verdict, entry.reason
    if reason is not None:
        word = "not written" if entry.state is State.SHOWN else "not fixed"
        return word, f"{reason.text} ({reason.code})"
    why = verdict.evidence if verdict else ""
    if verdict and not why.startswith(verdict.level):
        why = f"{verdict.level}: {why}"
    return ("fixed" if account.written else "would fix"), why


def facts(account: Account, file: FileAccount, entry: Entry) -> Iterator[Fact]:
    """All that is to be said of an entry after its message: what became of it comes first."""
    verdict, reason = entry.verdict, entry.reason
    yield Fact(*outcome(account, entry))
    if verdict and verdict.before_failed:
        yield Fact("before", verdict.before_failed)
    if reason is not None:
        yield Fact("way out", reason.way_out)
    if entry.case:
        yield Fact("to verify it, fill in and add this line", entry.case, is_code=True)
    for note in entry.finding.notes:
        yield Fact("note", note)
    yield from evidence(account, file, entry)


def evidence(account: Account, file: FileAccount, entry: Entry) -> Iterator[Fact]:
    """What a verdict rests on, and the command that shows it again."""
    known, verdict = proof(account, file, entry), entry.verdict
    if verdict is not None:
        stage = f"strongest stage {known.stage}" if known.stage else "no stage saw it"
        targets = f"for {', '.join(known.targets)}" if known.targets else ""
        tools = ", ".join(known.tools) or account.jax
        told = [verdict.level, stage, targets, f"with {tools}" if tools else ""]
        yield Fact("verdict", "; ".join(filter(None, told)))
    if known.together:
        fixes = "another fix" if known.together == 1 else f"{known.together} other fixes"
        yield Fact("verified", f"together with {fixes} of this file")
    yield Fact("to see it again", known.command, is_code=True)


def _stage(verdict: Verdict) -> Stage | None:
    """The stage that a verdict rests on."""
    if verdict.level in _STAGES:
        return _STAGES[verdict.level]
    if verdict.level in (Level.EQUAL, Level.CLOSE):
        told = [
            one.stage for case in verdict.cases for one in case.compared if one.same or one.close
        ]
        return _strongest(told)
    if verdict.level is Level.REFUTED:
        failed = [
            stage.stage
            for case in verdict.cases
            for stage in case.after.stages
            if stage.ok is False
        ]
        wrong = [
            one.stage
            for case in verdict.cases
            for one in case.compared
            if one.same is False and not one.close
        ]
        hazards = [Stage.RUN for case in verdict.cases if case.new_hazards]
        return next(iter([*failed, *wrong, *hazards]), None)
    return None


def _strongest(stages: list[Stage]) -> Stage | None:
    return max(stages, key=list(Stage).index, default=None)


def _reached(case: CaseResult, stage: Stage | None) -> bool:
    """True if a case came as far as to be asked at this stage."""
    return stage is not None and any(
        one.stage is stage and one.ok is not None for one in case.after.stages
    )


def _one_each(cases: list[CaseResult]) -> list[CaseResult]:
    """The first case of each target, and every command of the user."""
    first: dict[str, CaseResult] = {}
    for case in cases:
        first.setdefault(case.case if case.is_command else case.target, case)
    return list(first.values())


def _verified(entry: Entry) -> bool:
    return bool(entry.verdict and entry.verdict.cases)
