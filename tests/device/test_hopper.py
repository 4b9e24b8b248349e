"""The WGMMA fixtures and rewrites on a real Hopper GPU, before and after."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutations import Mutation, all_mutations
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.ladder import Ladder, Limits
from pallas_fix.verify.verdict import CaseResult, Level, Stage

FIXTURES = Path(__file__).parents[1] / "fixtures"

pytestmark = pytest.mark.device


def fixtures() -> Iterator[Path]:
    """The folders of fixtures with a rewritten WGMMA kernel for Hopper."""
    for path in sorted(FIXTURES.glob("GPU00*/*/case.toml")):
        told = tomllib.loads(path.read_text(encoding="utf-8"))
        if told.get("target") == "h100" and (path.parent / "after.py").exists():
            yield path.parent


def rewrites() -> Iterator[Mutation]:
    """The rewrites for Hopper, but for those that would hang the GPU."""
    return (one for one in all_mutations() if one.target == "h100" and not one.hangs)


@pytest.fixture(scope="module")
def ladder() -> Iterator[Ladder]:
    with Ladder(Path(sys.executable), limits=Limits(wall=60)) as ladder:
        yield ladder


@pytest.mark.parametrize(
    "folder", list(fixtures()), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_what_is_written_runs_and_computes_what_ran_before(folder: Path, ladder: Ladder) -> None:
    told = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    path = folder / "before.py"
    before, after = (
        (folder / name).read_text(encoding="utf-8") for name in ("before.py", "after.py")
    )
    [result] = ladder.check(folder, path, before, after, [parse_case(told["case"])], ["h100"])
    assert passed(result, Stage.DEVICE), result.after.stages
    on_device = [one for one in result.compared if one.stage is Stage.DEVICE]
    if "error" in told:
        assert on_device == []
    else:
        assert [one.same for one in on_device] == [True], on_device


@pytest.mark.parametrize("rewrite", list(rewrites()), ids=lambda one: one.name)
def test_wrong_rewrites_are_refuted_and_right_ones_are_not(
    rewrite: Mutation, ladder: Ladder
) -> None:
    verdict = rewrite.verdict(ladder)
    assert (verdict.level is Level.EQUAL) is rewrite.right, verdict.evidence
    assert (verdict.level is Level.REFUTED) is not rewrite.right, verdict.evidence


def passed(result: CaseResult, stage: Stage) -> bool:
    return any(one.stage is stage and one.ok for one in result.after.stages)
