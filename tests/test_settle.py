"""What may be written, which cases speak of a file, and what is said of where kernels ran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pallas_fix.config import Options, load
from pallas_fix.edits import Fix, Span
from pallas_fix.examine import Examined, Task, examine
from pallas_fix.facts import Facts
from pallas_fix.files import Source
from pallas_fix.report.account import State
from pallas_fix.rules import Options as RuleOptions
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Finding
from pallas_fix.settle import may_write, settle
from pallas_fix.verification import Verification, case_line
from pallas_fix.verify import devices
from pallas_fix.verify.cases import Case
from pallas_fix.verify.verdict import CaseResult, Level, Side, Stage, StageResult, Verdict

MESSAGES = ("Expected an accumulator ref",)
DOCUMENTED = "ValueError: Expected an accumulator ref, got Ref<vmem>"
OTHER = "TypeError: something else"

KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, y_ref, o_ref, acc_ref):
    pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
    pltpu.matmul_acc_lhs(acc_ref, x_ref[...], load_staged_rhs=0)
    o_ref[...] = pltpu.matmul_pop(acc_ref)


# pallas-fix: case entry(bf16[64,256], bf16[256,256])
def entry(x, y, *, bias, scale=1.0):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((64, 256), jnp.float32),
        scratch_shapes=[pltpu.VMEM((64, 256), jnp.float32)],
    )(x, y)
"""


def finding(certain: bool) -> Finding:
    return Finding("TPU001", Span(1, 0, 1, 1), "m", Fix((), certain))


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize("before", ["", DOCUMENTED, OTHER])
@pytest.mark.parametrize("level", list(Level))
def test_what_may_be_written(certain: bool, asked: bool, before: str, level: Level) -> None:
    """The table of DESIGN, section 7."""
    allowed = level is not Level.REFUTED and (
        certain
        or asked
        or level in (Level.EQUAL, Level.CLOSE)
        or (level is Level.COMPILED and before == DOCUMENTED)
    )
    verdict = Verdict(level, "", (), before)
    assert may_write(finding(certain), verdict, MESSAGES, asked) is allowed


class Ladder:
    """Answers every check as it was told, and remembers what it was asked."""

    def __init__(
        self, *, stages: Sequence[StageResult], entered: Sequence[str] = ("kernel",)
    ) -> None:
        self.asked: list[tuple[list[str], list[str]]] = []
        self._stages = tuple(stages)
        self._entered = frozenset(entered)
        self.device: str | None = None

    def check(
        self,
        root: Path,
        path: Path,
        before: str,
        after: str,
        cases: Sequence[Case],
        targets: Sequence[str],
        bound: float | None = None,
    ) -> list[CaseResult]:
        assert before == KERNEL
        self.asked.append(([str(case) for case in cases], list(targets)))
        failed = (StageResult(Stage.TRACE, False, error="ValueError", message=DOCUMENTED),)
        fixed = Side(self._stages, self._entered)
        if self.device:
            stages = (*self._stages, StageResult(Stage.DEVICE, True))
            fixed = Side(stages, self._entered, ran_on=(self.device,))
        return [CaseResult(str(case), targets[0], Side(failed), fixed) for case in cases]


COMPILED = [StageResult(stage, True) for stage in list(Stage)[:4]]
FAILED = [StageResult(Stage.TRACE, False, error="TypeError", message="no such thing")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    return tmp_path


def verification(ladder: Ladder, until: Stage = Stage.DEVICE, **options: object) -> Verification:
    cases = options.get("cases", ())
    assert isinstance(cases, tuple)
    config = load([Path("k.py")], Options(cases=cases), all_rules())
    return Verification(lambda path: config, lambda config: ladder, until)


def examined() -> Examined:
    rules = (all_rules()["TPU001"],)
    return examine(Task(Source.read(Path("k.py")), rules, RuleOptions()))


class TestVerification:
    def test_a_fix_is_written_with_its_verdict(self) -> None:
        ladder = Ladder(stages=COMPILED, entered=("kernel", "entry"))
        settled = settle(examined(), verification(ladder), False, all_rules())
        assert ladder.asked == [(["entry(bf16[64,256], bf16[256,256])"], ["tpu7x"])]
        assert "pltpu.ACC(0)" in settled.text
        [entry] = settled.entries
        assert (entry.state, entry.case) == (State.FIXED, "")
        assert entry.verdict is not None
        assert entry.verdict.level is Level.COMPILED
        assert DOCUMENTED in entry.verdict.before_failed

    def test_a_refuted_fix_is_never_written(self) -> None:
        ladder = Ladder(stages=FAILED, entered=("kernel", "entry"))
        settled = settle(examined(), verification(ladder), True, all_rules())
        assert settled.text == KERNEL
        [entry] = settled.entries
        assert entry.state is State.NOT_FIXED
        assert entry.reason is not None
        assert entry.reason.code == "refuted"
        assert "TypeError: no such thing" in entry.reason.text

    def test_a_fix_that_no_case_reached_comes_with_the_line_to_paste(self) -> None:
        ladder = Ladder(stages=COMPILED, entered=("other",))
        settled = settle(examined(), verification(ladder), False, all_rules())
        [entry] = settled.entries
        assert (entry.state, settled.text != KERNEL) == (State.FIXED, True)
        assert entry.case == "# pallas-fix: case entry(x=..., y=..., bias=...) @ tpu7x"

    @pytest.mark.parametrize("entered", [(), ("kernel", "entry")])
    def test_no_line_to_paste_where_another_case_would_not_help(
        self, entered: tuple[str, ...]
    ) -> None:
        """The file cannot be imported, or fails as before although a case reached the kernel."""
        stage = Stage.TRACE if entered else Stage.IMPORT
        failed = [StageResult(stage, False, error="ValueError", message="no such table")]

        class Failing(Ladder):
            def check(self, *asked: object) -> list[CaseResult]:
                after = Side(tuple(failed), frozenset(entered))
                return [CaseResult("c", "tpu7x", Side(tuple(failed)), after)]

        settled = settle(examined(), verification(Failing(stages=failed)), False, all_rules())
        [entry] = settled.entries
        assert entry.verdict is not None
        assert (entry.verdict.level, entry.case) == (Level.UNVERIFIED, "")

    def test_a_ladder_that_breaks_is_a_problem_of_the_file(self) -> None:
        from pallas_fix.files import SourceError

        class Broken(Ladder):
            def check(self, *asked: object) -> list[CaseResult]:
                raise OSError(28, "No space left on device")

        broken = verification(Broken(stages=COMPILED))
        with pytest.raises(SourceError, match="No space left on device") as caught:
            settle(examined(), broken, False, all_rules())
        assert "Traceback" in caught.value.detail

    def test_which_cases_speak_of_a_file(self, folder: Path) -> None:
        (folder / "runs.py").write_text("import k\n")
        given = ("entry(f32[8])", "nowhere(f32[8])", "k.py:entry()", "runs.py:main()")
        found = verification(Ladder(stages=COMPILED), cases=given).cases(Source.read(Path("k.py")))
        assert [str(case) for case in found] == [
            "entry(bf16[64,256], bf16[256,256])",
            "entry(f32[8])",
            "entry()",
            "runs.py:main()",
        ]

    def test_a_declared_case_that_does_not_parse_is_a_problem(self) -> None:
        source = Source(Path("k.py"), b"x = 1\n# pallas-fix: case f(bf17[8])\n")
        [problem] = verification(Ladder(stages=COMPILED)).problems(source)
        assert (problem.line, "'bf17' is no dtype" in problem.message) == (2, True)


class TestHardware:
    @pytest.mark.parametrize(
        ("device", "until", "present", "said"),
        [
            ("NVIDIA H200", Stage.DEVICE, True, "ran on NVIDIA H200"),
            (None, Stage.DEVICE, False, "not run on hardware: no GPU or TPU found"),
            (None, Stage.LOWER, True, "not run on hardware: --until lower"),
            (None, Stage.DEVICE, True, "not run on hardware: no device here ran"),
        ],
    )
    def test_where_kernels_ran(
        self,
        monkeypatch: pytest.MonkeyPatch,
        device: str | None,
        until: Stage,
        present: bool,
        said: str,
    ) -> None:
        monkeypatch.setattr(devices, "likely", lambda platform: present)
        ladder = Ladder(stages=COMPILED)
        ladder.device = device
        one = verification(ladder, until)
        settle(examined(), one, False, all_rules())
        assert one.hardware.startswith(said)

    def test_nothing_to_run(self) -> None:
        assert verification(Ladder(stages=COMPILED)).hardware.startswith("no kernel was run")


@pytest.mark.parametrize(
    ("around", "line"),
    [
        ("def run(x):\n    return pl.pallas_call(k, out_shape=x)(x)\n", "run(x=...)"),
        (
            "def outer(a, *rest, b, c=1):\n    def run(x):\n"
            "        return pl.pallas_call(functools.partial(k, n=1), out_shape=x)(x)\n",
            "outer(a=..., b=...)",
        ),
        ("def run(x):\n    return launch(k)\n", "run(x=...)"),
        ("y = pl.pallas_call(k, out_shape=x)(x)\n", "<module>()"),
        ("launch(k)\n", "<module>()"),
        ("", ""),
    ],
)
def test_the_line_to_paste(around: str, line: str) -> None:
    text = f"import functools\nfrom jax.experimental import pallas as pl\ndef k(r): ...\n{around}"
    found = Finding("TPU001", Span(3, 0, 3, 1), "m", Fix((), True, functions=("k",)), function="k")
    comment = f"# pallas-fix: case {line}" if line else ""
    assert case_line(Facts.parse(text, "k.py"), found, ()) == comment
