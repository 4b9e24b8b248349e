"""Every deliberately wrong rewrite is refuted, no right one is, and the published table is true."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutations import PAGE, Mutation, all_mutations, row
from pallas_fix.verify.ladder import Ladder, Limits
from pallas_fix.verify.verdict import Level, Stage

EVERY = list(all_mutations())
TABLE = PAGE.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="session")
def ladder() -> Iterator[Ladder]:
    with Ladder(Path(sys.executable), until=Stage.RUN, limits=Limits(wall=30)) as ladder:
        yield ladder


def test_the_table_has_a_row_for_each_and_no_other() -> None:
    assert len([line for line in TABLE if line.startswith("|")]) == len(EVERY) + 4


@pytest.mark.newest
@pytest.mark.compile
@pytest.mark.parametrize("mutation", EVERY, ids=lambda one: f"{one.kernel}: {one.name}")
def test_wrong_rewrites_are_refuted_and_right_ones_are_not(
    mutation: Mutation, ladder: Ladder
) -> None:
    verdict = mutation.verdict(ladder)
    assert verdict.level is (Level.EQUAL if mutation.right else Level.REFUTED), verdict.evidence
    assert row(mutation, verdict) in TABLE
