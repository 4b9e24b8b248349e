"""From what the ladder saw to the verdict on one fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pallas_fix.targets import TARGETS
from pallas_fix.verify import evidence
from pallas_fix.verify.cases import MODULE
from pallas_fix.verify.evidence import describe, failure, passed, refused
from pallas_fix.verify.verdict import CaseResult, Level, Stage, StageResult, Verdict

_LEVELS = (
    (Stage.COMPILE, Level.COMPILED),
    (Stage.LOWER, Level.LOWERED),
    (Stage.TRACE, Level.TRACED),
)
"""What is known once a stage was passed, strongest first."""

_STRENGTH = (Level.EQUAL, Level.CLOSE, *(level for _, level in _LEVELS), Level.UNVERIFIED)


def judge(
    functions: Sequence[str],
    results: Sequence[CaseResult],
    *,
    messages: Sequence[str] = (),
    meant: bool = True,
    device: bool = False,
) -> Verdict:
    """The verdict on a fix whose functions have these qualified names.

    Only the cases that entered all of the functions speak of the fix, and those that cannot even
    import the fixed file where the file before could be. If one of them fails after the fix, or
    computes other numbers, or has a hazard that the file before has not, the fix is refuted.
    One exception: `messages`, if given, are the errors that the fix is to end (a rule's regular
    expressions), and a case that fails before and after with one and the same other error says
    nothing. Nor does one where such an error has become a failed assertion, which is what an
    assert is for. And a kernel that is for TPUs or GPUs alone says nothing on the chips of the
    other kind, where it never worked. A command of the user that ended well before and does not
    any more refutes the fix whatever it entered.

    Numbers of a file before that jax refuses speak against a fix only where it is known what its
    author `meant`. With `device` the numbers of a device are a must: without them nothing is
    verified.
    """
    speaking = [result for result in results if _speaks(functions, result)]
    speaking = [result for result in speaking if not _foreign(result, speaking)]
    failed_before = _first(describe(refused(result.before.stages)) for result in speaking)
    silent: list[str] = []
    levels: list[tuple[Level, CaseResult]] = []

    def verdict(level: Level, why: str) -> Verdict:
        told = "" if level is Level.REFUTED else evidence.of_commands(speaking)
        return Verdict(level, "; ".join(filter(None, [why, told])), tuple(speaking), failed_before)

    for result in speaking:
        failed = failure(result.after.stages)
        if failed and messages and _same_trouble(result, failed, messages):
            silent.append(f"{result.case} fails before and after: {describe(failed)}")
        elif failed and not evidence.says_nothing(result, failed):
            return verdict(Level.REFUTED, evidence.refutation(result, failed))
        elif wrong := evidence.wrong_numbers(result, meant):
            return verdict(Level.REFUTED, wrong)
        else:
            levels.append((_level(result), result))
    best = min((level for level, _ in levels), key=_STRENGTH.index, default=Level.UNVERIFIED)
    if best is Level.UNVERIFIED:
        cases = [result for result in results if not result.is_command]
        return verdict(best, _first(silent) or evidence.why_not(cases))
    strongest = [result for level, result in levels if level is best]
    if device and not any(_ran_on_device(result) for result in strongest):
        return verdict(
            Level.UNVERIFIED,
            f"no device compared its numbers, which --require device asks for; "
            f"{evidence.of(best, strongest)}",
        )
    return verdict(best, evidence.of(best, strongest))


def _speaks(functions: Sequence[str], result: CaseResult) -> bool:
    failed = failure(result.after.stages)
    if failed and result.is_command and passed(result.before.stages, Stage.RUN):
        return True
    if failed and failed.stage is Stage.IMPORT:
        return passed(result.before.stages, Stage.IMPORT)
    entered = result.after.entered
    return bool(entered) and entered.issuperset(set(functions) - {MODULE})


def _foreign(result: CaseResult, others: Iterable[CaseResult]) -> bool:
    """True if a case fails for this target as before, but holds for one of the other platform."""
    failed = failure(result.after.stages)
    if failed is None or passed(result.before.stages, failed.stage):
        return False
    platform = TARGETS[result.target].platform
    return any(
        other.case == result.case
        and TARGETS[other.target].platform != platform
        and failure(other.after.stages) is None
        and passed(other.after.stages, Stage.TRACE)
        for other in others
    )


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _same_trouble(result: CaseResult, after: StageResult, messages: Sequence[str]) -> bool:
    before = failure(result.before.stages)
    if before is None or before.stage is not after.stage:
        return False
    owned = any(re.search(message, before.message) for message in messages)
    if after.error == "AssertionError":
        return owned
    return not owned and (before.error, before.message) == (after.error, after.message)


def _level(result: CaseResult) -> Level:
    if any(comparison.same for comparison in result.compared):
        return Level.EQUAL
    if any(comparison.close for comparison in result.compared):
        return Level.CLOSE
    return next(
        (level for stage, level in _LEVELS if passed(result.after.stages, stage)), Level.UNVERIFIED
    )


def _ran_on_device(result: CaseResult) -> bool:
    return any(
        comparison.stage is Stage.DEVICE and (comparison.same or comparison.close)
        for comparison in result.compared
    )
