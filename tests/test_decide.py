"""Which fixes are written, decided on what a made-up ladder says of made-up fixes.

A text is a word; each letter of it that is small is a finding, and its fix makes it a capital.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pallas_fix.decide import Accept, Decider, Decision
from pallas_fix.edits import Fix, Span
from pallas_fix.fixpoint import Outcome
from pallas_fix.rules.base import Finding
from pallas_fix.verify.verdict import Level, Verdict

WORD = "abcd"


def finding(letter: str) -> Finding:
    span = Span(1, WORD.index(letter), 1, WORD.index(letter) + 1)
    return Finding("TPU001", span, letter, Fix((), certain=letter in "ab"))


def fix(accept: Accept) -> Outcome:
    found = [finding(letter) for letter in WORD]
    applied = tuple(item for item in found if accept(item))
    made = "".join(item.message.upper() if item in applied else item.message for item in found)
    return Outcome(made, applied, tuple(item for item in found if item not in applied))


def decide(
    level: Callable[[str, str], Level], may_write: Callable[[Finding, Verdict], bool]
) -> tuple[Decision, list[str]]:
    """The decision, and the texts that were verified; `level` judges a letter in a text."""
    verified = []

    def verify(outcome: Outcome) -> Sequence[Verdict]:
        verified.append(outcome.text)
        return [Verdict(level(outcome.text, f.message), outcome.text) for f in outcome.applied]

    return Decider(fix, verify, may_write).decide(), verified


def unless_refuted(finding: Finding, verdict: Verdict) -> bool:
    return verdict.level is not Level.REFUTED


def test_all_together_at_once() -> None:
    decision, verified = decide(lambda text, letter: Level.COMPILED, unless_refuted)
    assert decision.outcome.text == "ABCD"
    assert verified == ["ABCD"]
    assert decision.withheld == ()


@pytest.mark.parametrize("guilty", ["b", "bd", "abcd"])
def test_the_guilty_go_and_the_others_stay(guilty: str) -> None:
    def level(text: str, letter: str) -> Level:
        spoilt = any(one.upper() in text for one in guilty)
        return Level.REFUTED if spoilt else Level.COMPILED

    decision, verified = decide(level, unless_refuted)
    kept = "".join(letter if letter in guilty else letter.upper() for letter in WORD)
    assert decision.outcome.text == kept
    assert [item.finding.message for item in decision.withheld] == list(guilty)
    assert all(item.verdict.level is Level.REFUTED for item in decision.withheld)
    assert kept == WORD or kept in verified
    assert len(verified) == len(set(verified))


def test_only_suspects_are_tried() -> None:
    def level(text: str, letter: str) -> Level:
        return Level.REFUTED if letter == "c" else Level.COMPILED

    decision, verified = decide(level, unless_refuted)
    assert decision.outcome.text == "ABcD"
    assert verified == ["ABCD", "ABcD"]


def test_what_is_written_was_verified_as_it_is_written() -> None:
    """What c and d (plausible) made compile is not said of a and b alone."""

    def level(text: str, letter: str) -> Level:
        return Level.COMPILED if "C" in text else Level.LOWERED

    decision, verified = decide(level, lambda finding, verdict: finding.message in "ab")
    assert decision.outcome.text == "ABcd"
    assert verified == ["ABCD", "ABcd"]
    assert {verdict.level for verdict in decision.verdicts} == {Level.LOWERED}
    assert [(item.finding.message, item.text) for item in decision.withheld] == [
        ("c", "ABCd"),
        ("d", "ABcD"),
    ]


def test_a_fix_that_fails_without_a_withheld_one_goes_too() -> None:
    def level(text: str, letter: str) -> Level:
        return Level.REFUTED if letter == "a" and "C" not in text else Level.COMPILED

    decision, _ = decide(
        level, lambda finding, verdict: unless_refuted(finding, verdict) and finding.message != "c"
    )
    assert decision.outcome.text == "aBcD"


def test_findings_that_share_a_key_share_their_lot() -> None:
    twins = [finding("a"), finding("a")]

    def fix_twins(accept: Accept) -> Outcome:
        applied = tuple(item for item in twins if accept(item))
        left = () if applied else tuple(twins)
        return Outcome("A" if applied else "a", applied, left)

    decision = Decider(
        fix_twins, lambda outcome: [Verdict(Level.REFUTED, "")] * 2, unless_refuted
    ).decide()
    assert decision.outcome.text == "a"
    assert [item.text for item in decision.withheld] == ["A", None]


def test_nothing_to_do_verifies_nothing() -> None:
    nothing = Outcome(WORD, (), ())
    decision = Decider(lambda accept: nothing, lambda outcome: [], unless_refuted).decide()
    assert decision == Decision(nothing, ())
