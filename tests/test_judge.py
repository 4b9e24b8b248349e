"""From stages to the verdict on one fix."""

from __future__ import annotations

import pytest

from pallas_fix.verify.judge import judge
from pallas_fix.verify.verdict import CaseResult, Level, Stage, StageResult

STAGES = list(Stage)
OWNED = ["Expected an accumulator ref"]
FAULT = StageResult(
    Stage.TRACE, False, 0, "ValueError", "Expected an accumulator ref, got x", "m:3"
)


def passed(last: str) -> tuple[StageResult, ...]:
    """All stages up to and with the one of that name passed; none for an empty name."""
    count = STAGES.index(Stage(last)) + 1 if last else 0
    return tuple(StageResult(stage, True) for stage in STAGES[:count])


def fails(stage: str, error: str = "ValueError", message: str = "no") -> tuple[StageResult, ...]:
    before = passed(STAGES[STAGES.index(Stage(stage)) - 1]) if stage != "import" else ()
    return (*before, StageResult(Stage(stage), False, 0, error, message))


def missing(stage: str, message: str) -> tuple[StageResult, ...]:
    *before, failed = fails(stage)
    return (*before, StageResult(failed.stage, None, message=message))


def result(
    before: tuple[StageResult, ...],
    after: tuple[StageResult, ...],
    entered: str = "f f.<locals>.k",
    same: bool | None = None,
    target: str = "tpu7x",
) -> CaseResult:
    return CaseResult(
        case="f(f32[8])",
        target=target,
        before=before,
        after=after,
        entered=frozenset(entered.split()),
        device="NVIDIA H100" if same is not None else None,
        same=same,
        tools=("jax 0.12.0.1", "libtpu 0.0.52"),
    )


BROKEN = (*passed("import"), FAULT)


@pytest.mark.parametrize(
    ("results", "level", "evidence"),
    [
        ([], Level.UNVERIFIED, "there is no case for it"),
        (
            [result(BROKEN, passed("compile"))],
            Level.COMPILED,
            "compiled for tpu7x (libtpu 0.0.52)",
        ),
        (
            [result(BROKEN, passed("trace")), result(BROKEN, passed("compile"), target="v6e")],
            Level.COMPILED,
            "compiled for v6e (libtpu 0.0.52)",
        ),
        (
            [result(BROKEN, missing("compile", "install x"))],
            Level.LOWERED,
            "lowered for tpu7x (jax 0.12.0.1); install x",
        ),
        (
            [result(passed("device"), passed("device"), same=True)],
            Level.EQUAL,
            "the same numbers, bit for bit, on NVIDIA H100",
        ),
        (
            [result(passed("device"), passed("device"), same=False)],
            Level.REFUTED,
            "f(f32[8]) computes other numbers on NVIDIA H100",
        ),
        (
            [result(BROKEN, passed("compile"), entered="f")],
            Level.UNVERIFIED,
            "no case reached it (tried: f(f32[8]))",
        ),
        (
            [result(BROKEN, BROKEN)],
            Level.REFUTED,
            "f(f32[8]) still fails at trace for tpu7x: "
            "ValueError: Expected an accumulator ref, got x (m:3)",
        ),
        (
            [result(BROKEN, fails("compile"))],
            Level.REFUTED,
            "f(f32[8]) failed at trace before, now fails at compile for tpu7x: ValueError: no",
        ),
        (
            [result(passed("compile"), fails("lower"))],
            Level.REFUTED,
            "f(f32[8]) worked before, now fails at lower for tpu7x: ValueError: no",
        ),
        (
            [result(passed("compile"), fails("import", "NameError"), entered="")],
            Level.REFUTED,
            "f(f32[8]) worked before, now fails at import for tpu7x: NameError: no",
        ),
        (
            [result(fails("import"), fails("import"), entered="")],
            Level.UNVERIFIED,
            "no case reached it: f(f32[8]) fails at import for tpu7x: ValueError: no",
        ),
        (
            [result(missing("import", "no jax"), missing("import", "no jax"), entered="")],
            Level.UNVERIFIED,
            "no jax",
        ),
        (
            [result(fails("trace", "IndexError"), fails("trace", "IndexError"))],
            Level.UNVERIFIED,
            "f(f32[8]) fails before and after: IndexError: no",
        ),
        (
            [result(BROKEN, fails("trace", "AssertionError", "shapes"))],
            Level.UNVERIFIED,
            "f(f32[8]) fails before and after: AssertionError: shapes",
        ),
        (
            [result(passed("compile"), fails("trace", "AssertionError", "shapes"))],
            Level.REFUTED,
            "f(f32[8]) worked before, now fails at trace for tpu7x: AssertionError: shapes",
        ),
    ],
)
def test_verdicts(results: list[CaseResult], level: Level, evidence: str) -> None:
    verdict = judge(["f", "f.<locals>.k"], results, messages=OWNED)
    assert (verdict.level, verdict.evidence) == (level, evidence)


def test_a_tpu_kernel_says_nothing_on_a_gpu() -> None:
    on_tpu = result(BROKEN, passed("compile"))
    on_gpu = result(BROKEN, fails("lower"), target="h100")
    assert judge(["f"], [on_gpu, on_tpu], messages=OWNED).level is Level.COMPILED
    assert judge(["f"], [on_gpu], messages=OWNED).level is Level.REFUTED
    worked = result(passed("compile"), fails("lower"), target="h100")
    assert judge(["f"], [worked, on_tpu], messages=OWNED).level is Level.REFUTED


def test_the_error_before_is_kept() -> None:
    verdict = judge(["f"], [result(BROKEN, passed("compile"))])
    assert verdict.before_failed == "ValueError: Expected an accumulator ref, got x (m:3)"


def test_without_messages_the_same_error_refutes() -> None:
    case = result(fails("trace", "IndexError"), fails("trace", "IndexError"))
    assert judge(["f"], [case]).level is Level.REFUTED


def test_a_fix_that_reassociates_may_move_numbers() -> None:
    case = result(passed("device"), passed("device"), same=False)
    assert judge(["f"], [case], reassociates=True).level is Level.COMPILED


def test_top_level_code_has_run_where_anything_has() -> None:
    case = result(BROKEN, passed("compile"))
    assert judge(["<module>"], [case]).level is Level.COMPILED
