"""From what the ladder saw to the verdict on one fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pallas_fix.targets import TARGETS
from pallas_fix.verify.cases import MODULE
from pallas_fix.verify.verdict import CaseResult, Level, Stage, StageResult, Verdict

_LEVELS = (
    (Stage.COMPILE, Level.COMPILED),
    (Stage.LOWER, Level.LOWERED),
    (Stage.TRACE, Level.TRACED),
)
"""What is known once a stage was passed, strongest first."""

_STRENGTH = (Level.EQUAL, *(level for _, level in _LEVELS), Level.UNVERIFIED)


def judge(
    functions: Sequence[str],
    results: Sequence[CaseResult],
    *,
    messages: Sequence[str] = (),
    reassociates: bool = False,
) -> Verdict:
    """The verdict on a fix whose functions have these qualified names.

    Only the cases that entered all of the functions speak of the fix, and those that cannot even
    import the fixed file where the file before could be. If one of them fails after the fix, the
    fix is refuted. One exception: `messages`, if given, are the errors that the fix is to end (a
    rule's regular expressions), and a case that fails before and after with one and the same
    other error says nothing. Nor does one where such an error has become a failed assertion,
    which is what an assert is for. And a kernel that is for TPUs or GPUs alone says nothing on
    the chips of the other kind, where it never worked.

    `reassociates` tells that the fix may move numbers within its bound: then other numbers on a
    device do not refute it, and the verdict stays at `compiled`.
    """
    speaking = [result for result in results if _speaks(functions, result)]
    speaking = [result for result in speaking if not _foreign(result, speaking)]
    failed_before = _first(_describe(_failure(result.before)) for result in speaking)
    silent: list[str] = []
    levels: list[tuple[Level, CaseResult]] = []
    for result in speaking:
        failure = _failure(result.after)
        if failure and messages and _same_trouble(result, failure, messages):
            silent.append(f"{result.case} fails before and after: {_describe(failure)}")
        elif failure:
            return Verdict(
                Level.REFUTED, _refutation(result, failure), tuple(speaking), failed_before
            )
        elif result.same is False and not reassociates:
            evidence = f"{result.case} computes other numbers on {result.device}"
            return Verdict(Level.REFUTED, evidence, tuple(speaking), failed_before)
        else:
            levels.append((_level(result), result))
    best = min((level for level, _ in levels), key=_STRENGTH.index, default=Level.UNVERIFIED)
    if best is Level.UNVERIFIED:
        reason = _first(silent) or _why_not(results)
        return Verdict(best, reason, tuple(speaking), failed_before)
    evidence = _evidence(best, [result for level, result in levels if level is best])
    return Verdict(best, evidence, tuple(speaking), failed_before)


def _speaks(functions: Sequence[str], result: CaseResult) -> bool:
    failure = _failure(result.after)
    if failure and failure.stage is Stage.IMPORT:
        return _passed(result.before, Stage.IMPORT)
    return bool(result.entered) and result.entered.issuperset(set(functions) - {MODULE})


def _foreign(result: CaseResult, others: Iterable[CaseResult]) -> bool:
    """True if a case fails for this target as before, but holds for one of the other platform."""
    failure = _failure(result.after)
    if failure is None or _passed(result.before, failure.stage):
        return False
    platform = TARGETS[result.target].platform
    return any(
        other.case == result.case
        and TARGETS[other.target].platform != platform
        and _failure(other.after) is None
        and _passed(other.after, Stage.TRACE)
        for other in others
    )


def _failure(stages: Iterable[StageResult]) -> StageResult | None:
    return next((stage for stage in stages if stage.ok is False), None)


def _passed(stages: Iterable[StageResult], wanted: Stage) -> bool:
    return any(stage.stage is wanted and stage.ok for stage in stages)


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _describe(failure: StageResult | None) -> str:
    """A failed stage in one line; empty where none failed."""
    if failure is None:
        return ""
    where = f" ({failure.where})" if failure.where else ""
    return f"{failure.error}: {failure.message.partition(chr(10))[0]}{where}"


def _same_trouble(result: CaseResult, after: StageResult, messages: Sequence[str]) -> bool:
    before = _failure(result.before)
    if before is None or before.stage is not after.stage:
        return False
    owned = any(re.search(message, before.message) for message in messages)
    if after.error == "AssertionError":
        return owned
    return not owned and (before.error, before.message) == (after.error, after.message)


def _refutation(result: CaseResult, failure: StageResult) -> str:
    before = _failure(result.before)
    if _passed(result.before, failure.stage):
        how = "worked before, now fails"
    elif before and before.stage is not failure.stage:
        how = f"failed at {before.stage} before, now fails"
    else:
        how = "still fails"
    return f"{result.case} {how} at {failure.stage} for {result.target}: {_describe(failure)}"


def _level(result: CaseResult) -> Level:
    if result.same:
        return Level.EQUAL
    return next(
        (level for stage, level in _LEVELS if _passed(result.after, stage)), Level.UNVERIFIED
    )


def _evidence(level: Level, results: Sequence[CaseResult]) -> str:
    """What the strongest cases show, with the targets, the tools and what was missing."""
    if level is Level.EQUAL:
        devices = dict.fromkeys(result.device for result in results if result.device)
        return f"the same numbers, bit for bit, on {', '.join(devices)}"
    tools = {result.target: _tool(level, result) for result in results}
    targets = [f"{target} ({tool})" if tool else target for target, tool in tools.items()]
    text = f"{level} for {', '.join(targets)}"
    missing = _first(
        stage.message for result in results for stage in result.after if stage.ok is None
    )
    return f"{text}; {missing}" if missing else text


def _tool(level: Level, result: CaseResult) -> str:
    if not result.tools:
        return ""
    return result.tools[-1] if level is Level.COMPILED else result.tools[0]


def _why_not(results: Sequence[CaseResult]) -> str:
    if not results:
        return "there is no case for it"
    for result in results:
        failure = _failure(result.after)
        if failure:
            place = f"at {failure.stage} for {result.target}"
            return f"no case reached it: {result.case} fails {place}: {_describe(failure)}"
    missing = _first(
        stage.message for result in results for stage in result.after if stage.ok is None
    )
    cases = ", ".join(dict.fromkeys(result.case for result in results))
    return missing or f"no case reached it (tried: {cases})"
