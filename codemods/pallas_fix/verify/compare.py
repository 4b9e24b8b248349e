"""Compares the numbers that two versions of a file computed from the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pallas_fix.verify.process import Outcome
from pallas_fix.verify.verdict import Comparison, Stage

Pairs = list[tuple[int, str]]
"""Sets of inputs to look at: their index and their kind."""

Differences = Callable[[Pairs], dict[int, dict[str, Any]]]
"""Asks how the outputs of these sets of inputs differ (`worker/numbers.py`, `difference`)."""


def compare(
    stage: Stage, before: Outcome, after: Outcome, ask: Differences, reordered: bool
) -> Comparison | None:
    """What the numbers say; None where one of the versions has none.

    `reordered` tells that the fix declares a bound, which `ask` knows.
    """
    if not before.numbers or not after.numbers:
        return None
    on = after.ran_on
    pairs = list(zip(before.numbers, after.numbers, strict=False))
    inputs = tuple(_named(new) for _, new in pairs)
    other = _other_types(pairs) or _other_runs(before, after)
    if other:
        return Comparison(stage, False, on, inputs, message=other)
    open_pairs = [
        (index, old["inputs"]) for index, (old, new) in enumerate(pairs) if not _settled(old, new)
    ]
    if not open_pairs:
        trivial = _trivial([new for _, new in pairs])
        return Comparison(stage, None if trivial else True, on, inputs, message=trivial)
    told = ask(open_pairs)
    if not told:
        return Comparison(stage, None, on, inputs, message="the numbers could not be compared")
    if reordered:
        return _held_to_bound(stage, on, inputs, pairs, told)
    worst = max(told.values(), key=lambda one: _WORSE.index(one["answer"]))
    same = False if worst["answer"] == "differs" else None
    return Comparison(stage, same, on, inputs, message=_where(worst, told, pairs))


_WORSE = ("same", "close", "undefined", "differs")


def _settled(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """True if the digests alone say that the outputs are the same."""
    return all(
        one["digest"] == two["digest"] and not one["undefined"]
        for one, two in zip(old["outputs"], new["outputs"], strict=True)
    )


def _other_types(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    for old, new in pairs:
        types = [[one["type"] for one in side["outputs"]] for side in (old, new)]
        if len(types[0]) != len(types[1]):
            return f"it has {len(types[0])} outputs before and {len(types[1])} after"
        for number, (one, two) in enumerate(zip(*types, strict=True)):
            if one != two:
                return f"output {number} is {one} before and {two} after"
    return ""


def _other_runs(before: Outcome, after: Outcome) -> str:
    runs = len(before.numbers), len(after.numbers)
    return f"it ran {runs[0]} times before and {runs[1]} times after" if runs[0] != runs[1] else ""


def _trivial(runs: Sequence[dict[str, Any]]) -> str:
    """Why equal numbers say nothing: all of them are one number, whatever the inputs."""
    seen = {output["digest"] for run in runs for output in run["outputs"]}
    constant = all(output["constant"] for run in runs for output in run["outputs"])
    most = max(len(run["outputs"]) for run in runs)
    if constant and len(seen) <= most:
        return "every output holds one number only, which shows nothing: give the case other inputs"
    return ""


def _held_to_bound(
    stage: Stage,
    on: str,
    inputs: tuple[str, ...],
    pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]],
    told: dict[int, dict[str, Any]],
) -> Comparison:
    """Where sums are rounded, other bits are right within the bound; where not, they are wrong."""
    allowed = {"exact": ("same",), "positive": ("same", "close")}
    judged = [
        (index, one)
        for index, one in told.items()
        if one["answer"] not in allowed.get(pairs[index][0]["inputs"], _WORSE)
    ]
    if judged:
        index, one = judged[0]
        same = False if one["answer"] == "differs" else None
        text = _where(one, {index: one}, pairs)
        return Comparison(stage, same, on, inputs, message=text)
    kinds = {pair[0]["inputs"] for pair in pairs}
    bounded = {n: one for n, one in told.items() if pairs[n][0]["inputs"] in allowed} or told
    largest = max(bounded.values(), key=lambda one: _WORSE.index(one["answer"]))
    message = _where(largest, told, pairs)
    if not kinds.issuperset(allowed):  # inputs of its own, for which no bound is known
        return Comparison(stage, None, on, inputs, message=message)
    return Comparison(stage, False, on, inputs, close=True, message=message)


def _where(
    one: dict[str, Any],
    told: dict[int, dict[str, Any]],
    pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]],
) -> str:
    index = next(index for index, other in told.items() if other is one)
    return f"{one['message']} ({_named(pairs[index][0])})"


def _named(run: dict[str, Any]) -> str:
    """What went into a run: `own` inputs, or the kind of numbers and their seed."""
    return (
        "own inputs" if run["inputs"] == "own" else f"{run['inputs']} numbers, seed {run['seed']}"
    )
