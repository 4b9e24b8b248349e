"""What was seen, in sentences: why a fix holds, does not hold, or is not known to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pallas_fix.targets import TARGETS
from pallas_fix.verify.verdict import CaseResult, Level, Resources, Stage, StageResult


def failure(stages: Iterable[StageResult]) -> StageResult | None:
    """The stage that failed, if one did."""
    return next((stage for stage in stages if stage.ok is False), None)


def passed(stages: Iterable[StageResult], wanted: Stage) -> bool:
    return any(stage.stage is wanted and stage.ok for stage in stages)


def refused(stages: Iterable[StageResult]) -> StageResult | None:
    """The stage at which jax or the compiler refuses a version."""
    return failure(stage for stage in stages if stage.stage is not Stage.RUN)


def describe(failed: StageResult | None) -> str:
    """A failed stage in one line; empty where none failed."""
    if failed is None:
        return ""
    where = f" ({failed.where})" if failed.where else ""
    return f"{failed.error}: {failed.message.partition(chr(10))[0]}{where}"


def says_nothing(result: CaseResult, failed: StageResult) -> bool:
    """True if a failed run does not speak against the fix.

    Who never ran has not lost anything, and an emulator is slow and hungry: only a GPU kernel that
    whose threads all wait is known to be stuck.
    """
    if failed.stage is not Stage.RUN:
        return False
    if failed.error == "Deadlock" and TARGETS[result.target].platform == "gpu":
        return False
    limited = failed.error in (
        "Deadlock",
        "Timeout",
        "CpuLimit",
        "OutputLimit",
        "ProcessLimit",
        "DiskLimit",
        "SIGKILL",
        "MemoryError",
    )
    return limited or not passed(result.before.stages, Stage.RUN)


def refutation(result: CaseResult, failed: StageResult) -> str:
    """Why a stage that failed after the fix speaks against it."""
    before = failure(result.before.stages)
    if passed(result.before.stages, failed.stage):
        how = "worked before, now fails"
    elif before and before.stage is not failed.stage:
        how = f"failed at {before.stage} before, now fails"
    else:
        how = "still fails"
    return f"{result.case} {how} at {failed.stage} for {result.target}: {describe(failed)}"


def wrong_numbers(result: CaseResult, meant: bool) -> str:
    """Why the numbers or the hazards of a case speak against the fix; empty where they do not.

    A file before that jax refuses has numbers to hold a fix to only where it is known what its
    author `meant`.
    """
    if refused(result.before.stages) is not None and not meant:
        return ""
    for comparison in result.compared:
        if comparison.same is False and not comparison.close:
            return f"{result.case} computes other numbers on {comparison.on}: {comparison.message}"
    if passed(result.before.stages, Stage.RUN):
        for hazard in result.new_hazards:
            return (
                f"{result.case} has a new hazard, {hazard.kind} ({hazard.where}): {hazard.message}"
            )
    return ""


def of(level: Level, results: Sequence[CaseResult]) -> str:
    """What the strongest cases show, with the targets, the tools and what was missing."""
    compiled = _compiled(results)
    if level in (Level.EQUAL, Level.CLOSE):
        return "; ".join(filter(None, [_compared(level, results), compiled]))
    tools = {result.target: _tool(level, result) for result in results}
    targets = [f"{target} ({tool})" if tool else target for target, tool in tools.items()]
    return "; ".join(filter(None, [f"{level} for {', '.join(targets)}", _missing(results)]))


def of_commands(results: Iterable[CaseResult]) -> str:
    """What the commands of the user say that end well after the fix."""
    told = []
    for result in results:
        if result.is_command and passed(result.after.stages, Stage.RUN):
            before = failure(result.before.stages)
            said = result.after.stages[-1].message or "exit status 0"
            failed = before and (before.message or before.error)
            how = f"failed before ({failed}), passes now" if failed else "passes as before"
            told.append(f"`{result.case}` {how} ({said})")
    return "; ".join(told)


def why_not(results: Sequence[CaseResult]) -> str:
    """Why nothing is known of a fix."""
    if not results:
        return "there is no case for it"
    for result in results:
        failed = failure(result.after.stages)
        if failed:
            place = f"at {failed.stage} for {result.target}"
            return f"no case reached it: {result.case} fails {place}: {describe(failed)}"
    cases = ", ".join(dict.fromkeys(result.case for result in results))
    return _missing(results) or f"no case reached it (tried: {cases})"


def _compared(level: Level, results: Sequence[CaseResult]) -> str:
    told = [
        comparison
        for result in results
        for comparison in result.compared
        if (comparison.same if level is Level.EQUAL else comparison.close)
    ]
    places = ", ".join(dict.fromkeys(one.on for one in reversed(told)))
    inputs = min((one.inputs for one in told), key=len)
    runs = f"{len(inputs)} sets of inputs" if len(inputs) > 1 else "one set of inputs"
    if level is Level.EQUAL:
        return f"the same numbers, bit for bit, on {places} ({runs})"
    most = next((one.message for one in told if one.message), "")
    return f"the same numbers within the bound of a reordered sum on {places} ({runs}; {most})"


def _compiled(results: Sequence[CaseResult]) -> str:
    """For which targets the strongest cases compile, and what was missing where not."""
    tools = {
        result.target: _told(result.tools[-1], result)
        for result in results
        if result.tools and passed(result.after.stages, Stage.COMPILE)
    }
    if tools:
        return "compiled for " + ", ".join(f"{name} ({tool})" for name, tool in tools.items())
    stages = [stage for result in results for stage in result.after.stages]
    return next((stage.message for stage in stages if stage.ok is None and stage.message), "")


def _tool(level: Level, result: CaseResult) -> str:
    if not result.tools:
        return ""
    return _told(result.tools[-1], result) if level is Level.COMPILED else result.tools[0]


def _told(tool: str, result: CaseResult) -> str:
    """A compiler, and what its code takes: the most of all kernels, and before where it differs."""
    after, before = (_most(side.resources) for side in (result.after, result.before))
    if after is None:
        return tool
    words = [
        f"{now} {unit}" + (f" ({then} before)" if then not in (None, now) else "")
        for now, then, unit in zip(
            after, before or (None, None), ("registers", "bytes spilled"), strict=True
        )
    ]
    return f"{tool}: {', '.join(words)}"


def _most(taken: Iterable[Resources]) -> tuple[int, int] | None:
    """Registers and spilled bytes of the kernel that takes most."""
    return max(((one.registers, one.spilled) for one in taken), default=None)


def _missing(results: Sequence[CaseResult]) -> str:
    """What kept the cases from being known better, in the order of the stages."""
    for result in results:
        for stage in result.after.stages:
            if stage.ok is None:
                return stage.message
    for result in results:
        for comparison in result.compared:
            if comparison.same is None:
                return f"numbers not compared: {comparison.message}"
            if comparison.same is False and not comparison.close:
                return "numbers not compared: what the file before means is not known"
    for result in results:
        after = failure(result.after.stages)
        if after is not None:
            return f"not run: {describe(after)}"
        if passed(result.after.stages, Stage.RUN) and not result.compared:
            where = result.after.ran_on[-1] if result.after.ran_on else "CPU"
            return f"ran on {where}, with no numbers of before to compare with"
    return ""
