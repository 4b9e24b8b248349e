"""From stages to the verdict on one fix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pallas_fix.verify.judge import judge
from pallas_fix.verify.verdict import (
    CaseResult,
    Comparison,
    Hazard,
    Level,
    Resources,
    Side,
    Stage,
    StageResult,
)

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
    compared: Comparison | None = None,
    target: str = "tpu7x",
    hazards: tuple[tuple[Hazard, ...], tuple[Hazard, ...]] = ((), ()),
) -> CaseResult:
    tools = "jax 0.12.0.1", "libtpu 0.0.52"
    return CaseResult(
        case="f(f32[8])",
        target=target,
        before=Side(before, hazards=hazards[0], tools=tools),
        after=Side(after, frozenset(entered.split()), hazards=hazards[1], tools=tools),
        compared=(compared,) if compared else (),
    )


def numbers(
    same: bool | None, *, close: bool = False, device: bool = False, message: str = ""
) -> Comparison:
    on = "NVIDIA H100" if device else "CPU (emulated MXU)"
    return Comparison(
        Stage.DEVICE if device else Stage.RUN,
        same,
        on,
        ("plain numbers, seed 0", "plain numbers, seed 1"),
        close,
        message,
    )


DIFFERENT = numbers(False, device=True, message="output 0: 3 differ")
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
            [result(passed("device"), passed("device"), compared=numbers(True, device=True))],
            Level.EQUAL,
            "the same numbers, bit for bit, on NVIDIA H100 (2 sets of inputs); "
            "compiled for tpu7x (libtpu 0.0.52)",
        ),
        (
            [result(passed("device"), passed("device"), compared=DIFFERENT)],
            Level.REFUTED,
            "f(f32[8]) computes other numbers on NVIDIA H100: output 0: 3 differ",
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


def test_a_fix_that_reassociates_may_move_numbers_within_its_bound() -> None:
    case = result(passed("run"), passed("run"), compared=numbers(False, close=True))
    verdict = judge(["f"], [case])
    assert verdict.level is Level.CLOSE
    assert "within the bound" in verdict.evidence


@pytest.mark.parametrize("compared", [numbers(True), None])
def test_a_device_that_is_a_must(compared: Comparison | None) -> None:
    case = result(passed("run"), passed("run"), compared=compared)
    verdict = judge(["f"], [case], device=True)
    assert verdict.level is Level.UNVERIFIED
    assert verdict.evidence.startswith("no device compared its numbers, which --require device")
    case = result(passed("device"), passed("device"), compared=numbers(True, device=True))
    assert judge(["f"], [case], device=True).level is Level.EQUAL


def test_a_new_hazard_refutes_and_an_old_one_or_a_note_does_not() -> None:
    left = Hazard("acc-at-exit", True, "k.py:3", 1, "it is never popped")
    note = Hazard("pop-empty", False, "k.py:4", 1, "it is popped before anything is accumulated")

    def level(before: tuple[Hazard, ...], after: tuple[Hazard, ...]) -> Level:
        ran = passed("run")
        case = result(ran, ran, compared=numbers(True), hazards=(before, after))
        return judge(["f"], [case]).level

    assert level((), (left,)) is Level.REFUTED
    assert level((left,), (left,)) is Level.EQUAL
    assert level((), (note,)) is Level.EQUAL


@pytest.mark.parametrize(
    ("before", "error", "target", "level"),
    [
        (passed("run"), "IndexError", "tpu7x", Level.REFUTED),
        (BROKEN, "IndexError", "tpu7x", Level.COMPILED),
        (passed("run"), "Timeout", "tpu7x", Level.COMPILED),
        (passed("run"), "Timeout", "h100", Level.COMPILED),
        (passed("run"), "Deadlock", "h100", Level.REFUTED),
        (BROKEN, "Deadlock", "h100", Level.REFUTED),
        (BROKEN, "Deadlock", "tpu7x", Level.COMPILED),
    ],
)
def test_a_failed_run_refutes_only_what_ran_before_or_is_stuck(
    before: tuple[StageResult, ...], error: str, target: str, level: Level
) -> None:
    case = result(before, fails("run", error), target=target)
    assert judge(["f"], [case]).level is level


def test_numbers_of_a_file_that_jax_refuses_speak_only_where_its_meaning_is_known() -> None:
    case = result((*BROKEN, StageResult(Stage.RUN, True)), passed("run"), compared=numbers(False))
    assert judge(["f"], [case]).level is Level.REFUTED
    verdict = judge(["f"], [case], meant=False)
    assert verdict.level is Level.COMPILED
    assert verdict.evidence.endswith("what the file before means is not known")


def test_registers_and_spills_are_told_before_against_after() -> None:
    case = result(BROKEN, passed("compile"), target="h100")
    before = replace(case.before, resources=(Resources("kernel", 88, 0),))
    after = replace(case.after, resources=(Resources("kernel", 96, 16), Resources("other", 9, 0)))
    told = judge(["f"], [replace(case, before=before, after=after)]).evidence
    assert "96 registers (88 before), 16 bytes spilled (0 before)" in told


def test_top_level_code_has_run_where_anything_has() -> None:
    case = result(BROKEN, passed("compile"))
    assert judge(["<module>"], [case]).level is Level.COMPILED
