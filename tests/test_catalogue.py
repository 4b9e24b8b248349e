"""Every change of the catalogue: what the rules make of it, and what the newest jax says."""

from __future__ import annotations

import sys

import pytest

from catalogue import Entry, entries, run

EVERY = entries()
REPAIRED = [entry for entry in EVERY if entry.after != entry.before]


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    """What each repaired file raises on this jax."""
    return run(sys.executable, {entry.name: entry.after for entry in REPAIRED}, strict=True)


@pytest.mark.parametrize("entry", EVERY, ids=lambda entry: entry.name)
def test_the_rules_make_of_it_what_it_says(entry: Entry) -> None:
    outcome = entry.fix(entry.before)
    assert outcome.bug == ""
    assert outcome.text == entry.after
    assert entry.fix(outcome.text).text == outcome.text


@pytest.mark.compile
@pytest.mark.newest
@pytest.mark.parametrize("entry", REPAIRED, ids=lambda entry: entry.name)
def test_the_result_runs(entry: Entry, errors: dict[str, str]) -> None:
    assert errors[entry.name] == ""
