"""One version of a file on its way up the ladder: one case, one target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from pallas_fix.targets import Target
from pallas_fix.verify import devices
from pallas_fix.verify.cases import Case
from pallas_fix.verify.jobs import Job
from pallas_fix.verify.process import Outcome
from pallas_fix.verify.verdict import Side, Stage, StageResult

Do = Callable[[Path, Target, bool, Job], Outcome]
"""Does a job: with which interpreter, for which target, on a device or not."""

_ORDER = list(Stage)


@dataclass(frozen=True, slots=True)
class Plan:
    """What climbs.

    `runs` are the sets of inputs for numbers, which are kept in `folder`. `version` is `before`
    or `after`, or empty where there is one only; the one before may run on what its author meant
    where jax refuses it. `partial` tells that the copy of the project is not complete.
    """

    job: Job
    case: Case
    target: Target
    python: Path
    runs: tuple[tuple[str, int], ...]
    folder: Path
    version: str
    partial: bool


@dataclass(slots=True)
class Climb:
    """What was seen: each job and its outcome, by its mode."""

    plan: Plan
    stages: list[StageResult] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    done: dict[str, Outcome] = field(default_factory=dict)

    def passed(self, stage: Stage) -> bool:
        return any(result.stage is stage and result.ok for result in self.stages)

    @property
    def failed(self) -> bool:
        return any(result.ok is False for result in self.stages)

    def folder(self, mode: str) -> Path:
        """Where the numbers of a job of that mode are."""
        return self.plan.folder / mode

    def side(self) -> Side:
        outcomes = list(self.done.values())
        return Side(
            stages=tuple(self.stages),
            entered=frozenset().union(*(outcome.entered for outcome in outcomes)),
            ran_on=tuple(outcome.ran_on for outcome in outcomes if outcome.ran_on),
            hazards=tuple(hazard for outcome in outcomes for hazard in outcome.hazards),
            resources=tuple(one for outcome in outcomes for one in outcome.resources),
            tools=next((outcome.tools for outcome in outcomes if outcome.tools), ()),
        )


def climb(plan: Plan, until: Stage, do: Do, say: Callable[[str], None]) -> Climb:
    """Climb as far as it goes, at most to the stage `until`."""
    made = Climb(plan)

    def step(mode: str, last: Stage, **more: object) -> Outcome:
        say(mode)
        job = plan.job | {"mode": mode, "until": last, "runs": plan.runs, "races": False}
        job |= {"numbers": str(made.folder(mode)), "oracle": False} | more
        made.jobs[mode] = job
        return do(plan.python, plan.target, mode == "device", job)

    last = min(until, Stage.COMPILE, key=_ORDER.index)
    compiled = made.done["compile"] = step("compile", last)
    made.stages += compiled.stages
    if plan.partial:
        _say_so(made.stages)
    if compiled.lost:
        return made
    refused = made.failed
    if _reaches(until, Stage.RUN) and (not refused or plan.version == "before"):
        races = plan.target.platform == "gpu"
        ran = made.done["run"] = step("run", Stage.RUN, oracle=refused, races=races)
        made.stages.append(_last(ran, Stage.RUN))
    if (
        _reaches(until, Stage.DEVICE)
        and made.passed(Stage.COMPILE)
        and devices.likely(plan.target.platform)
    ):
        ran = step("device", Stage.DEVICE)
        if ran.ran_on and devices.matches(plan.target.kind, ran.ran_on):
            made.done["device"] = ran
            made.stages.append(_last(ran, Stage.DEVICE))
    return made


def _reaches(until: Stage, stage: Stage) -> bool:
    return _ORDER.index(until) >= _ORDER.index(stage)


def _last(outcome: Outcome, stage: Stage) -> StageResult:
    """What a job of one stage says of it, also where it came no further than the import."""
    return replace(outcome.stages[-1], stage=stage)


def _say_so(stages: list[StageResult]) -> None:
    """Add to a failed import that the copy of the project is not complete."""
    first = stages[0]
    if first.ok is False:
        note = f"{first.message} (the project is too large: not all files were copied)"
        stages[0] = replace(first, message=note)
