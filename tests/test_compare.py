"""Numbers of before and after: what counts as the same, as close, as unknown, as different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pallas_fix.verify.compare import Pairs, compare
from pallas_fix.verify.process import Outcome
from pallas_fix.verify.verdict import Comparison, Stage
from pallas_fix.verify.worker import numbers

NAN = float("nan")
PLAIN = ("plain", 0), ("plain", 1)
REORDERED = (*PLAIN, ("exact", 2), ("positive", 3))

Runs = list[list[Any]]


def outcome(folder: Path, runs: Runs, kinds: tuple[tuple[str, int], ...]) -> Outcome:
    """What a worker tells of these runs, each a list of outputs; they are kept in `folder`."""
    folder.mkdir()
    made = Outcome(ran_on="CPU (interpreted)")
    for index, ((kind, seed), arrays) in enumerate(zip(kinds, runs, strict=False)):
        told = numbers.keep([np.asarray(array) for array in arrays], str(folder), index)
        made.numbers.append({"inputs": kind, "seed": seed, "outputs": told})
    return made


def compared(
    tmp_path: Path,
    before: Runs,
    after: Runs,
    kinds: tuple[tuple[str, int], ...] = PLAIN,
    unit: float | None = None,
) -> Comparison:
    sides = [outcome(tmp_path / name, runs, kinds) for name, runs in (("b", before), ("a", after))]

    def ask(pairs: Pairs) -> dict[int, dict[str, Any]]:
        return {
            index: numbers.difference(
                str(tmp_path / "b"),
                str(tmp_path / "a"),
                index,
                unit=unit,
                steps=4,
                exact=kind == "exact",
            )
            for index, kind in pairs
        }

    found = compare(Stage.RUN, sides[0], sides[1], ask, unit is not None)
    assert found is not None
    return found


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


ONE, TWO = f32(1, 2, 3), f32(4, 5, 6)


@pytest.mark.parametrize(
    ("after", "same", "message"),
    [
        ([[ONE], [TWO]], True, ""),
        (
            [[ONE], [f32(4, 5, 6.5)]],
            False,
            "output 0 (float32[3]): 1 of 3 numbers differ, by up to 0.5, the first at [2]: "
            "6 before, 6.5 after (plain numbers, seed 1)",
        ),
        (
            [[f32(1, 2, NAN)], [TWO]],
            False,
            "output 0 (float32[3]): 1 numbers are undefined after, the first at [2] "
            "(plain numbers, seed 0)",
        ),
        ([[ONE, ONE], [TWO, TWO]], False, "it has 1 outputs before and 2 after"),
        ([[ONE]], False, "it ran 2 times before and 1 times after"),
        (
            [[ONE.astype(ml_dtypes.bfloat16)], [TWO]],
            False,
            "output 0 is float32[3] before and bfloat16[3] after",
        ),
        (
            [[ONE.reshape(3, 1)], [TWO]],
            False,
            "output 0 is float32[3] before and float32[3,1] after",
        ),
        ([[np.nextafter(ONE, TWO)], [TWO]], False, "output 0 (float32[3]): 3 of 3 numbers differ"),
    ],
)
def test_what_is_the_same(tmp_path: Path, after: Runs, same: bool, message: str) -> None:
    found = compared(tmp_path, [[ONE], [TWO]], after)
    assert found.same is same
    assert found.message.startswith(message)
    assert not found.close


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ([[f32(1, NAN)], [f32(2, NAN)]], None, "1 numbers are undefined before the fix"),
        ([[f32(1, NAN)], [f32(2, NAN)]], [[f32(1, 5)], [f32(2, 5)]], "1 numbers are undefined"),
        ([[f32(0, 1)], [f32(0, 2)]], [[f32(-0.0, 1)], [f32(0, 2)]], "zeros have another sign"),
        ([[f32(0, 0)], [f32(0, 0)]], None, "every output holds one number only"),
    ],
)
def test_what_has_no_answer(tmp_path: Path, before: Runs, after: Runs | None, message: str) -> None:
    found = compared(tmp_path, before, after or before)
    assert found.same is None
    assert message in found.message


@pytest.mark.parametrize(
    ("exact", "positive", "same", "close"),
    [
        (f32(8, 8), f32(0.5, 0.75), True, False),
        (f32(8, 8), np.nextafter(f32(0.5, 0.75), ONE[:1]), False, True),
        (f32(8, 8), f32(0.5, 0.8), False, False),
        (f32(8, 9), f32(0.5, 0.75), False, False),
    ],
)
def test_a_reordered_sum_is_held_to_its_bound(
    tmp_path: Path, exact: Any, positive: Any, same: bool, close: bool
) -> None:
    before = [[ONE], [TWO], [f32(8, 8)], [f32(0.5, 0.75)]]
    after = [[ONE], [TWO], [exact], [positive]]
    found = compared(tmp_path, before, after, REORDERED, unit=2.0**-24)
    assert (found.same, found.close) == (same, close)


def test_plain_numbers_of_a_reordered_sum_may_move(tmp_path: Path) -> None:
    before = [[ONE], [TWO], [f32(8, 8)], [f32(0.5, 0.75)]]
    after = [[f32(1, 2, 3.1)], *before[1:]]
    found = compared(tmp_path, before, after, REORDERED, unit=2.0**-24)
    assert (found.same, found.close) == (False, True)


def test_no_bound_is_known_for_inputs_of_its_own(tmp_path: Path) -> None:
    found = compared(tmp_path, [[ONE]], [[TWO]], (("own", 0),), unit=2.0**-24)
    assert (found.same, found.close) == (None, False)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.bool_])
def test_small_dtypes_keep_their_bits(tmp_path: Path, dtype: Any) -> None:
    values = np.array([1, 0, 1]).astype(dtype)
    other = np.array([0, 1, 1]).astype(dtype)
    (tmp_path / "same").mkdir()
    assert compared(tmp_path / "same", [[values], [other]], [[values], [other]]).same
    assert compared(tmp_path, [[values], [other]], [[other], [other]]).same is False
