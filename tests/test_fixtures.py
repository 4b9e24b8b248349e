"""Every fixture of every rule: what the rules make of it, and what the real compilers say."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from fixture import FIXTURES, Fixture, all_fixtures
from pallas_fix.rules import all_rules
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.judge import judge
from pallas_fix.verify.ladder import Ladder
from pallas_fix.verify.verdict import Level, Stage, StageResult

EVERY = list(all_fixtures())
STAGES = list(Stage)
LEVELS = list(Level)


def for_this_jax(fixtures: Sequence[Fixture]) -> Iterator[object]:
    """The fixtures with a kernel that the installed jax can be asked about."""
    for fixture in fixtures:
        if not fixture.case or fixture.jax not in ("", version("jax")):
            continue
        marks = [pytest.mark.compile] if fixture.jax else [pytest.mark.compile, pytest.mark.newest]
        yield pytest.param(fixture, id=fixture.name, marks=marks)


@pytest.fixture(scope="session")
def ladder() -> Iterator[Ladder]:
    with Ladder(Path(sys.executable), until=Stage.RUN) as ladder:
        yield ladder


def test_every_rule_has_a_fixture_and_every_fixture_a_rule() -> None:
    assert {folder.name for folder in FIXTURES.iterdir()} == set(all_rules())


@pytest.mark.parametrize("fixture", EVERY, ids=lambda fixture: fixture.name)
def test_the_rules_make_of_it_what_it_says(fixture: Fixture) -> None:
    before = fixture.before
    outcome = fixture.fix(before.text)

    assert outcome.bug == ""
    assert before.encode(outcome.text) == fixture.after.data
    if fixture.negative:
        assert outcome.remaining == ()
    elif fixture.reason:
        assert fixture.reason in [
            finding.reason.code for finding in outcome.remaining if finding.reason
        ]
    else:
        assert {finding.code for finding in outcome.applied} == set(fixture.rules)
        assert fixture.fix(outcome.text).applied == ()


@pytest.mark.parametrize("fixture", list(for_this_jax(EVERY)))
def test_the_compilers_say_what_it_says(fixture: Fixture, ladder: Ladder) -> None:
    [result] = ladder.check(
        fixture.folder,
        fixture.folder / "before.py",
        fixture.before.text,
        fixture.after.text,
        [parse_case(fixture.case)],
        [fixture.target],
        bound(fixture),
    )

    if fixture.error:
        failed = failure(result.before.stages)
        assert failed is not None, "before.py does not fail"
        assert failed.stage == fixture.stage
        assert re.search(fixture.error, f"{failed.error}: {failed.message}")
    else:
        assert passed(result.before.stages, fixture.until), failure(result.before.stages)
    if fixture.changes:
        assert passed(result.after.stages, fixture.until), failure(result.after.stages)
    if fixture.changes and fixture.until is Stage.COMPILE and not fixture.jax:
        verdict = judge((), [result], meant=all_rules()[fixture.rules[0]].meant)
        assert LEVELS.index(verdict.level) <= LEVELS.index(fixture.promised), verdict.evidence


def bound(fixture: Fixture) -> float | None:
    """The rounding unit that the fixes of a fixture declare, if they reorder sums."""
    applied = fixture.fix(fixture.before.text).applied
    units = [finding.fix.bound.unit for finding in applied if finding.fix and finding.fix.bound]
    return max(units, default=None)


def failure(results: Sequence[StageResult]) -> StageResult | None:
    """The first stage that was not passed."""
    return next((result for result in results if not result.ok), None)


def passed(results: Sequence[StageResult], until: Stage) -> bool:
    """Whether every stage up to `until` was asked and passed."""
    answers = {result.stage: result.ok for result in results}
    return all(answers.get(stage) for stage in STAGES[: STAGES.index(until) + 1])
