"""What the ladder answers: stages, verdicts, evidence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """The steps of the ladder, in the order in which they are climbed."""

    IMPORT = "import"
    TRACE = "trace"
    LOWER = "lower"
    COMPILE = "compile"
    DEVICE = "device"


class Level(StrEnum):
    """The strongest thing known of a fix. Only `equal` may be called proved."""

    EQUAL = "equal"
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
    """

    stage: Stage
    ok: bool | None
    seconds: float = 0.0
    error: str = ""
    message: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case on one target: the stages of the file before and after, in order.

    `entered` holds the qualified names of the functions of the file that ran in the `after`
    version. `device` names the device where the kernel ran, if one did; `same` compares the
    numbers of before and after there (None: not comparable). `tools` are versions for the
    report (`jax 0.12.0.1`, `libtpu 0.0.52`).
    """

    case: str
    target: str
    before: tuple[StageResult, ...]
    after: tuple[StageResult, ...]
    entered: frozenset[str] = frozenset()
    device: str | None = None
    same: bool | None = None
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The level of one fix, with the evidence in one sentence and the cases behind it."""

    level: Level
    evidence: str
    cases: tuple[CaseResult, ...] = ()
    before_failed: str = ""
    """The error of the version before the fix, where it failed; empty otherwise."""
