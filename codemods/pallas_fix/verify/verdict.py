"""What the ladder answers: stages, comparisons, hazards, verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """The steps of the ladder, in the order in which they are climbed.

    `run` computes numbers on the CPU, emulated or interpreted; `device` on the chip itself.
    """

    IMPORT = "import"
    TRACE = "trace"
    LOWER = "lower"
    COMPILE = "compile"
    RUN = "run"
    DEVICE = "device"


class Level(StrEnum):
    """The strongest thing known of a fix. Only `equal` may be called proved.

    `close` is for a fix that declares that it reorders a sum: its numbers stay within its bound.
    """

    EQUAL = "equal"
    CLOSE = "close"
    COMPILED = "compiled"
    LOWERED = "lowered"
    TRACED = "traced"
    UNVERIFIED = "unverified"
    REFUTED = "refuted"


@dataclass(frozen=True, slots=True)
class StageResult:
    """One stage on one version of a file.

    `ok` is None where the stage could not be asked here (a missing extra, no device): then
    `message` says what is missing and how to get it. `where` is `file:line` of the user's code.
    `cached` tells that an earlier run was asked, and nothing has changed since.
    """

    stage: Stage
    ok: bool | None
    seconds: float = 0.0
    error: str = ""
    message: str = ""
    where: str = ""
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Hazard:
    """What no compiler sees and the emulator does: data left behind, a register pushed twice, ...

    `kind` is a word for programs (`acc-at-exit`), `where` is `file:line` of the user's code,
    `count` how often it happened. One that is `serious` makes numbers wrong, or those of the next
    kernel; the others are notes.
    """

    kind: str
    serious: bool
    where: str
    count: int
    message: str


@dataclass(frozen=True, slots=True)
class Resources:
    """What ptxas says that a GPU kernel takes: registers a thread, spilled bytes a thread."""

    kernel: str
    registers: int
    spilled: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The numbers of the versions before and after, from one stage.

    `same`: bit for bit, True or False; None where that has no answer, for which `message` has the
    reason. `close` is True where they differ, but stay within the bound that the fix declares.
    `on` says where they come from, `inputs` what went in: the kind and the seed of each set.
    """

    stage: Stage
    same: bool | None
    on: str
    inputs: tuple[str, ...]
    close: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """One version of the file on one case and one target.

    `entered` holds the qualified names of the functions of the file that ran. `ran_on` names where
    kernels computed numbers: `CPU (emulated MXU)`, `NVIDIA H200`. `tools` are versions
    (`jax 0.12.0.1`, `libtpu 0.0.52`).
    """

    stages: tuple[StageResult, ...] = ()
    entered: frozenset[str] = frozenset()
    ran_on: tuple[str, ...] = ()
    hazards: tuple[Hazard, ...] = ()
    resources: tuple[Resources, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case on one target: the versions before and after, and their numbers compared.

    Or a command of the user, `$ pytest -q`, which has one stage, `run`.
    """

    case: str
    target: str
    before: Side
    after: Side
    compared: tuple[Comparison, ...] = ()

    @property
    def is_command(self) -> bool:
        """True for what a command says; it computes no numbers that could be compared."""
        return self.case.startswith("$ ")

    @property
    def tools(self) -> tuple[str, ...]:
        return self.after.tools or self.before.tools

    @property
    def device(self) -> str | None:
        """The device on which the version after ran, if one did."""
        passed = any(stage.stage is Stage.DEVICE and stage.ok for stage in self.after.stages)
        return self.after.ran_on[-1] if passed else None

    @property
    def new_hazards(self) -> tuple[Hazard, ...]:
        """The serious hazards of a kind that only the version after has."""
        known = {hazard.kind for hazard in self.before.hazards}
        return tuple(
            hazard for hazard in self.after.hazards if hazard.serious and hazard.kind not in known
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """The level of one fix, with the evidence in one sentence and the cases behind it."""

    level: Level
    evidence: str
    cases: tuple[CaseResult, ...] = ()
    before_failed: str = ""
    """The error of the version before the fix, where it failed; empty otherwise."""
