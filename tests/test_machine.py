"""The model of the MXUs: its numbers, its hazards, and programs of many operations."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pallas_fix.verify.worker.tpu.machine import CHIPS, Chip, Hazard, Machine

Array = np.ndarray[Any, Any]

TPU7X = CHIPS["TPU7x"]
V6E = CHIPS["TPU v6 lite"]
SMALL = Chip("small", mxus=2, size=8, rows=32)
F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)


def floats(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def machine(chip: Chip = SMALL) -> Machine:
    return Machine(chip)


def kinds(of: Machine) -> list[tuple[str, object]]:
    return [(hazard.kind, hazard.site) for hazard in of.hazards()]


def test_sums_are_those_of_numpy() -> None:
    m = machine(TPU7X)
    lhs, rhs, other = floats(0, 192, 256), floats(1, 256, 256), floats(2, 256, 256)
    m.push(0, 1, rhs, False, "push")
    m.push(1, 1, other, True, "push other")
    m.accumulate(1, 64, lhs, 0, "acc")
    m.accumulate(1, 64, lhs, 1, "acc other")
    got = m.pop(1, 64, 192, F32, "pop")
    first = (lhs.astype(np.float64) @ rhs).astype(np.float32)
    second = (lhs.astype(np.float64) @ other.T).astype(np.float32)
    np.testing.assert_array_max_ulp(got, first + second, maxulp=1)
    assert got.dtype == F32
    assert m.hazards() == []
    assert (m.operations, m.accumulations) == (5, 2)


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_integers_are_exact(dtype: type[Any]) -> None:
    limits = np.iinfo(dtype)
    random = np.random.default_rng(0)
    lhs = random.integers(limits.min, limits.max, size=(16, 256), endpoint=True).astype(dtype)
    rhs = random.integers(limits.min, limits.max, size=(256, 256), endpoint=True).astype(dtype)
    m = machine(TPU7X)
    m.push(0, 0, rhs, False, "push")
    m.accumulate(0, 0, lhs, 0, "acc")
    got = m.pop(0, 0, 16, I32, "pop")
    np.testing.assert_array_equal(got, (lhs.astype(np.int64) @ rhs).astype(np.int32))


def test_weights_stay_until_others_are_loaded() -> None:
    m = machine()
    lhs, one, two = floats(0, 8, 8), np.eye(8, dtype=np.float32), floats(1, 8, 8)
    m.push(0, 0, one, False, "push")
    m.push(1, 0, two, False, "push")
    np.testing.assert_array_equal(m.product(0, lhs, 0, "a"), lhs)
    np.testing.assert_array_equal(m.product(0, lhs, None, "b"), lhs)
    assert m.staged(0) == []
    assert m.staged(1) == [0]
    assert not np.array_equal(m.product(0, lhs, 1, "c"), lhs)


def test_a_pop_zeroes_what_it_pops_and_nothing_else() -> None:
    m = machine()
    lhs = floats(0, 16, 8)
    m.push(0, 0, np.eye(8, dtype=np.float32), False, "push")
    m.accumulate(0, 0, lhs, 0, "acc")
    np.testing.assert_array_equal(m.pop(0, 0, 8, F32, "first"), lhs[:8])
    np.testing.assert_array_equal(m.pop(0, 8, 8, F32, "second"), lhs[8:])
    np.testing.assert_array_equal(m.pop(0, 0, 16, F32, "third"), np.zeros((16, 8), np.float32))
    assert kinds(m) == [("pop-empty", "third")]


def test_a_result_fifo_gives_results_in_order() -> None:
    m = machine(V6E)
    m.push(0, 1, np.eye(256, dtype=np.float32), False, "push")
    first, second = floats(0, 16, 256), floats(1, 8, 256)
    m.enqueue(1, first, 0, "a")
    m.enqueue(1, second, None, "b")
    np.testing.assert_array_equal(m.dequeue(1, (16, 256), F32, "pop"), first)
    np.testing.assert_array_equal(m.dequeue(1, (8, 256), F32, "pop"), second)
    assert m.hazards() == []


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 40), cut=st.integers(0, 40))
@settings(max_examples=30, deadline=None)
def test_a_row_has_the_same_bits_wherever_it_is(seed: int, rows: int, cut: int) -> None:
    lhs = floats(seed, rows, 256)
    m = machine(TPU7X)
    m.push(0, 0, floats(seed + 1, 256, 256), False, "push")
    whole = m.product(0, lhs, 0, "whole")
    parts = [m.product(0, part, None, "part") for part in (lhs[:cut], lhs[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_row_does_not_see_the_others() -> None:
    lhs = floats(0, 16, 8)
    m = machine()
    m.push(0, 0, floats(1, 8, 8), False, "push")
    clean = m.product(0, lhs, 0, "a")
    lhs[3] = np.nan
    lhs[9] = np.inf
    dirty = m.product(0, lhs, None, "b")
    others = [row for row in range(16) if row not in (3, 9)]
    np.testing.assert_array_equal(dirty[others], clean[others])


def staged(m: Machine, register: int = 0, mxu: int = 0) -> None:
    m.push(register, mxu, np.eye(8, dtype=np.float32), False, "push")


def push_twice(m: Machine) -> None:
    staged(m)
    m.push(0, 0, floats(0, 8, 8), False, "again")
    m.product(0, floats(0, 8, 8), 0, "use")


def load_of_the_other_mxu(m: Machine) -> None:
    staged(m)
    m.product(1, floats(0, 8, 8), 0, "load")
    m.product(0, floats(0, 8, 8), 0, "use")


def weights_that_nobody_loaded(m: Machine) -> None:
    m.product(0, floats(0, 8, 8), None, "use")


def weights_left(m: Machine) -> None:
    staged(m)


def sum_left(m: Machine) -> None:
    staged(m)
    m.accumulate(0, 8, floats(0, 16, 8), 0, "acc")
    m.pop(0, 8, 8, F32, "pop")


def pop_of_nothing(m: Machine) -> None:
    m.pop(1, 0, 8, F32, "pop")


def pop_of_too_much(m: Machine) -> None:
    staged(m)
    m.accumulate(0, 0, floats(0, 8, 8), 0, "acc")
    m.pop(0, 0, 16, F32, "pop")


def overlap(m: Machine) -> None:
    staged(m)
    m.accumulate(0, 0, floats(0, 16, 8), 0, "one")
    m.accumulate(0, 8, floats(0, 16, 8), None, "two")
    m.pop(0, 0, 24, F32, "pop")


def pop_of_integers(m: Machine) -> None:
    staged(m)
    m.accumulate(0, 0, floats(0, 8, 8), 0, "acc")
    m.pop(0, 0, 8, I32, "pop")


def outside(m: Machine) -> None:
    staged(m)
    m.accumulate(0, 24, floats(0, 16, 8), 0, "acc")
    m.pop(0, -8, 8, F32, "pop")


def no_such_mxu(m: Machine) -> None:
    m.push(0, 2, floats(0, 8, 8), False, "push")
    m.accumulate(-1, 0, floats(0, 8, 8), 0, "acc")
    m.pop(7, 0, 8, F32, "pop")
    m.enqueue(2, floats(0, 8, 8), None, "put")
    m.dequeue(2, (8, 8), F32, "get")
    m.product(2, floats(0, 8, 8), None, "use")


def no_such_register(m: Machine) -> None:
    m.push(2, 0, floats(0, 8, 8), False, "push")
    m.product(0, floats(0, 8, 8), -1, "load")


def weights_of_another_shape(m: Machine) -> None:
    m.push(0, 0, floats(0, 8, 16), True, "push")
    m.product(0, floats(0, 8, 16), 0, "use")


def operand_of_another_depth(m: Machine) -> None:
    staged(m)
    m.product(0, floats(0, 8, 4), 0, "use")


def operands_of_two_kinds(m: Machine) -> None:
    staged(m)
    m.product(0, np.ones((8, 8), np.int8), 0, "use")


def result_that_is_not_there(m: Machine) -> None:
    m.dequeue(0, (8, 8), F32, "pop")


def result_of_another_shape(m: Machine) -> None:
    staged(m)
    m.enqueue(0, floats(0, 8, 8), 0, "put")
    m.dequeue(0, (16, 8), F32, "pop")


def result_of_another_kind(m: Machine) -> None:
    staged(m)
    m.enqueue(0, floats(0, 8, 8), 0, "put")
    m.dequeue(0, (8, 8), I32, "pop")


def results_left(m: Machine) -> None:
    staged(m)
    m.enqueue(0, floats(0, 8, 8), 0, "put")
    m.enqueue(0, floats(0, 8, 8), None, "put more")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (push_twice, [("push-occupied", "again")]),
        (load_of_the_other_mxu, [("load-empty", "load")]),
        (weights_that_nobody_loaded, [("no-weights", "use")]),
        (weights_left, [("staged-at-exit", "push")]),
        (sum_left, [("acc-at-exit", "acc")]),
        (pop_of_nothing, [("pop-empty", "pop")]),
        (pop_of_too_much, [("pop-partial", "pop")]),
        (overlap, [("acc-overlap", "two")]),
        (pop_of_integers, [("pop-dtype", "pop")]),
        (outside, [("acc-out-of-range", "acc"), ("acc-out-of-range", "pop")]),
        (
            no_such_mxu,
            [("bad-index", site) for site in ("push", "acc", "pop", "put", "get", "use")],
        ),
        (no_such_register, [("bad-index", "push"), ("bad-index", "load")]),
        (weights_of_another_shape, [("bad-shape", "push")]),
        (operand_of_another_depth, [("bad-shape", "use")]),
        (operands_of_two_kinds, [("bad-dtype", "use")]),
        (result_that_is_not_there, [("fifo-underflow", "pop")]),
        (result_of_another_shape, [("fifo-shape", "pop")]),
        (result_of_another_kind, [("pop-dtype", "pop")]),
        (results_left, [("fifo-at-exit", "put"), ("fifo-at-exit", "put more")]),
    ],
)
def test_hazards(program: Callable[[Machine], None], expected: list[tuple[str, str]]) -> None:
    m = machine()
    program(m)
    assert kinds(m) == expected
    assert {hazard.severity for hazard in m.hazards()} == (
        {"note"} if program is pop_of_nothing else {"error"}
    )


def test_a_hazard_names_both_places_and_counts() -> None:
    m = machine()
    staged(m)
    for _ in range(3):
        m.push(0, 0, floats(0, 8, 8), False, "k.py:9")
    m.product(0, floats(0, 8, 8), 0, "use")
    assert m.hazards() == [
        Hazard(
            "push-occupied",
            "error",
            "k.py:9",
            3,
            "staging register 0 of MXU 0 still holds what push pushed: load that before, or push "
            "to another register",
        )
    ]


def test_what_is_left_is_told_again_and_not_kept() -> None:
    m = machine()
    staged(m)
    assert m.hazards() == m.hazards() != []
    m.product(0, floats(0, 8, 8), 0, "use")
    assert m.hazards() == []


def test_a_reset_machine_is_a_new_one() -> None:
    m = machine()
    results_left(m)
    m.accumulate(0, 0, floats(0, 8, 8), None, "acc")
    m.reset()
    assert m.hazards() == []
    assert (m.operations, m.accumulations) == (0, 0)
    np.testing.assert_array_equal(m.pop(0, 0, 8, F32, "pop"), np.zeros((8, 8)))


def test_a_chip_without_accumulators_says_so() -> None:
    m = machine(V6E)
    m.push(0, 0, floats(0, 256, 256), False, "push")
    m.accumulate(0, 0, floats(0, 8, 256), 0, "acc")
    assert [hazard.message for hazard in m.hazards()] == [
        "rows 0 to 7 are used, an MXU of TPU v6 lite has no accumulators"
    ]


def test_what_is_not_defined_is_no_number() -> None:
    m = machine()
    m.accumulate(0, 0, floats(0, 8, 8), 1, "acc")
    m.accumulate(0, 0, floats(0, 8, 8), 1, "acc")
    assert np.isnan(m.pop(0, 0, 8, F32, "pop")).all()
    m.accumulate(0, 0, np.ones((8, 8), np.int8), 1, "acc")
    m.push(0, 0, np.ones((8, 8), np.int8), False, "push")
    m.accumulate(0, 0, np.ones((8, 8), np.int8), 0, "acc")
    least = np.iinfo(np.int32).min
    np.testing.assert_array_equal(m.pop(0, 0, 8, I32, "pop"), np.full((8, 8), least))
    np.testing.assert_array_equal(m.pop(0, 0, 8, I32, "pop"), np.zeros((8, 8)))


def test_threads_do_not_disturb_each_other() -> None:
    m = machine(Chip("wide", mxus=4, size=8, rows=8))
    results: dict[int, Array] = {}

    def work(mxu: int) -> None:
        for _ in range(50):
            m.push(0, mxu, np.eye(8, dtype=np.float32), False, "push")
            m.accumulate(mxu, 0, np.full((8, 8), mxu + 1, np.float32), 0, "acc")
        results[mxu] = m.pop(mxu, 0, 8, F32, "pop")

    threads = [Thread(target=work, args=(mxu,)) for mxu in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert m.hazards() == []
    assert m.operations == 4 * 101
    for mxu, result in results.items():
        np.testing.assert_array_equal(result, np.full((8, 8), 50 * (mxu + 1)))


class Reference:
    """The same unit in the plainest way, for small integers, whose sums no order changes."""

    def __init__(self) -> None:
        self.staged: dict[tuple[int, int], Array] = {}
        self.weights: dict[int, Array] = {}
        self.sums: dict[tuple[int, int], Array] = {}
        self.results: dict[int, deque[Array]] = {0: deque(), 1: deque()}

    def product(self, mxu: int, lhs: Array, load: int | None) -> Array:
        if load is not None:
            self.weights[mxu] = self.staged.pop((mxu, load), np.full((8, 8), np.nan, F32))
        weights = self.weights.get(mxu, np.full((8, 8), np.nan, F32))
        return (lhs @ weights).astype(np.float32)


MXUS = st.integers(0, 1)
REGISTERS = st.integers(0, 1)
BLOCKS = st.sampled_from([0, 8, 16, 24])
LOADS = st.none() | REGISTERS
VALUES = st.integers(0, 2**32 - 1)
STEPS = st.one_of(
    st.tuples(st.just("push"), REGISTERS, MXUS, VALUES, st.booleans()),
    st.tuples(st.just("accumulate"), MXUS, BLOCKS, VALUES, LOADS),
    st.tuples(st.just("pop"), MXUS, BLOCKS),
    st.tuples(st.just("enqueue"), MXUS, VALUES, LOADS),
    st.tuples(st.just("dequeue"), MXUS),
)


def small(seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, size=(8, 8)).astype(np.float32)


@given(st.lists(STEPS, max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_program_gives_the_numbers_of_the_reference(steps: list[tuple[Any, ...]]) -> None:
    m, plain = machine(), Reference()
    expected: set[str] = set()
    for step in steps:
        match step:
            case ("push", register, mxu, seed, transpose):
                if (mxu, register) in plain.staged:
                    expected.add("push-occupied")
                m.push(register, mxu, small(seed), transpose, "s")
                plain.staged[mxu, register] = small(seed).T if transpose else small(seed)
            case ("accumulate", mxu, row, seed, load):
                expected |= missing(plain, mxu, load)
                m.accumulate(mxu, row, small(seed), load, "s")
                held = plain.sums.get((mxu, row), np.zeros((8, 8), np.float32))
                plain.sums[mxu, row] = held + plain.product(mxu, small(seed), load)
            case ("pop", mxu, row):
                if (mxu, row) not in plain.sums:
                    expected.add("pop-empty")
                zero = np.zeros((8, 8), np.float32)
                wanted = plain.sums.pop((mxu, row), zero)
                np.testing.assert_array_equal(m.pop(mxu, row, 8, F32, "s"), wanted)
            case ("enqueue", mxu, seed, load):
                expected |= missing(plain, mxu, load)
                m.enqueue(mxu, small(seed), load, "s")
                plain.results[mxu].append(plain.product(mxu, small(seed), load))
            case ("dequeue", mxu):
                got = m.dequeue(mxu, (8, 8), F32, "s")
                if plain.results[mxu]:
                    np.testing.assert_array_equal(got, plain.results[mxu].popleft())
                else:
                    expected.add("fifo-underflow")
    if plain.staged:
        expected.add("staged-at-exit")
    if plain.sums:
        expected.add("acc-at-exit")
    if any(plain.results.values()):
        expected.add("fifo-at-exit")
    assert {hazard.kind for hazard in m.hazards()} == expected


def missing(plain: Reference, mxu: int, load: int | None) -> set[str]:
    if load is None:
        return set() if mxu in plain.weights else {"no-weights"}
    return set() if (mxu, load) in plain.staged else {"load-empty"}
