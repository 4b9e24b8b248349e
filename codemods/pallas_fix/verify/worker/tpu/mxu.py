"""One matrix unit (MXU): staging registers, weights, accumulators, the FIFO of results.

What the compiler would refuse, or what the chip would do with no defined result, is a hazard, and
its numbers are NaN (integers: the least), so that they never pass as equal.

What the operations do: `matmul_push_rhs`, `matmul_acc_lhs`, `matmul_pop`, `matmul_lhs_fifo` and
`matmul_pop_fifo` of jax/_src/pallas/mosaic/primitives.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import Array, is_whole, product, undefined
from .hazards import Hazards

_HALF_BYTES = ("int4", "uint4", "float4_e2m1fn")
"""Weights of these dtypes are pushed two rows at a time."""


@dataclass(frozen=True, slots=True)
class Chip:
    """The matrix units of one core.

    `size` is the number of rows and of columns of the weights, `rows` those of the accumulators
    of one MXU (0: it has none), `registers` the staging registers of one MXU.
    """

    kind: str
    mxus: int
    size: int
    rows: int
    registers: int = 2


@dataclass(frozen=True, slots=True)
class _Weights:
    values: Array | None  # None: they do not fit
    site: Hashable


@dataclass(frozen=True, slots=True)
class _Sum:
    """Rows that were accumulated together and not popped since; `site` of the last time."""

    first: int
    rows: int
    whole: bool
    site: Hashable

    @property
    def text(self) -> str:
        return f"rows {self.first} to {self.first + self.rows - 1}"


class Mxu:
    """The MXU of number `index`; hazards go to `hazards`."""

    def __init__(self, chip: Chip, index: int, hazards: Hazards) -> None:
        self._chip = chip
        self._name = f"MXU {index}"
        self._hazards = hazards
        self._staged: list[_Weights | None] = [None] * chip.registers
        self._weights: _Weights | None = None
        self._floats = np.zeros((chip.rows, chip.size), np.float32)
        self._wholes = np.zeros((chip.rows, chip.size), np.int32)
        self._unknown = np.zeros(chip.rows, np.bool_)
        self._sums: list[_Sum | None] = [None] * chip.rows
        self._results: deque[tuple[Array, Hashable]] = deque()

    @property
    def has_weights(self) -> bool:
        return self._weights is not None

    def is_staged(self, register: int) -> bool:
        return self._staged[register] is not None

    def push(self, register: int, rhs: Array, transpose: bool, site: Hashable) -> None:
        old = self._staged[register]
        if old is not None:
            self._hazards.add(
                "push-occupied",
                site,
                f"staging register {register} of {self._name} still holds what {old.site} "
                "pushed: load that before, or push to another register",
            )
        self._staged[register] = _Weights(self._fitting(rhs, transpose, site), site)

    def load(self, register: int, site: Hashable) -> None:
        """Take the weights from a staging register, which is empty then."""
        self._weights, self._staged[register] = self._staged[register], None
        if self._weights is None:
            message = f"staging register {register} of {self._name} is empty: push to it before"
            self._hazards.add("load-empty", site, message)
            self._weights = _Weights(None, site)

    def product(self, lhs: Array, site: Hashable) -> tuple[Array, bool]:
        """`lhs @ weights`, and whether it is defined."""
        whole = is_whole(lhs.dtype)
        if self._weights is None:
            message = f"{self._name} has no weights yet: pass load_staged_rhs"
            self._hazards.add("no-weights", site, message)
        elif self._weights.values is not None:
            rhs = self._weights.values
            if lhs.ndim != 2 or lhs.shape[1] != rhs.shape[0]:
                message = f"the left operand is {_text(lhs.shape)}, the weights {_text(rhs.shape)}"
                self._hazards.add("bad-shape", site, message)
            elif whole != is_whole(rhs.dtype):
                message = f"the left operand is {lhs.dtype.name}, the weights {rhs.dtype.name}"
                self._hazards.add("bad-dtype", site, message)
            else:
                return product(lhs, rhs), True
        dtype = np.dtype(np.int32 if whole else np.float32)
        return undefined((lhs.shape[0], self._chip.size), dtype), False

    def accumulate(self, row: int, lhs: Array, site: Hashable) -> None:
        values, known = self.product(lhs, site)
        rows, whole = lhs.shape[0], is_whole(lhs.dtype)
        if not self._in_range(row, rows, site):
            return
        span, new = slice(row, row + rows), _Sum(row, rows, whole, site)
        for old in self._held(span):
            if (old.first, old.rows) != (new.first, new.rows):
                self._hazards.add(
                    "acc-overlap",
                    site,
                    f"{new.text} of {self._name} overlap {old.text}, which {old.site} "
                    "accumulates into and nobody has popped",
                )
                break
        with np.errstate(all="ignore"):
            (self._wholes if whole else self._floats)[span] += values
        self._unknown[span] |= not known
        self._sums[span] = [new] * rows

    def pop(self, row: int, rows: int, dtype: np.dtype[Any], site: Hashable) -> Array:
        columns = self._chip.size
        if not self._in_range(row, rows, site):
            return undefined((rows, columns), dtype)
        span, whole = slice(row, row + rows), is_whole(dtype)
        self._check_pop(span, whole, dtype, site)
        other = [held is not None and held.whole != whole for held in self._sums[span]]
        unknown = self._unknown[span] | np.array(other, np.bool_)
        values = (self._wholes if whole else self._floats)[span].astype(dtype)
        values[unknown] = undefined((columns,), dtype)
        for memory in (self._floats, self._wholes, self._unknown):
            memory[span] = 0
        self._sums[span] = [None] * rows
        return values

    def enqueue(self, lhs: Array, site: Hashable) -> None:
        self._results.append((self.product(lhs, site)[0], site))

    def dequeue(self, shape: tuple[int, ...], dtype: np.dtype[Any], site: Hashable) -> Array:
        if not self._results:
            message = f"the result FIFO of {self._name} is empty: pop each result once"
            self._hazards.add("fifo-underflow", site, message)
            return undefined(shape, dtype)
        values, made = self._results.popleft()
        if values.shape != tuple(shape):
            message = f"{_text(shape)} is popped, the result of {made} is {_text(values.shape)}"
            self._hazards.add("fifo-shape", site, message)
            return undefined(shape, dtype)
        if is_whole(values.dtype) != is_whole(dtype):
            message = f"{dtype.name} is popped, the result of {made} is {values.dtype.name}"
            self._hazards.add("pop-dtype", site, message)
            return undefined(shape, dtype)
        return values.astype(dtype)

    def tell_left(self, hazards: Hazards) -> None:
        """Add what a kernel leaves behind if it ends now."""
        for register, weights in enumerate(self._staged):
            if weights is not None:
                message = f"staging register {register} of {self._name} is never loaded after this"
                hazards.add("staged-at-exit", weights.site, message)
        for left in self._held(slice(None)):
            message = f"{left.text} of {self._name} hold a sum that is never popped"
            hazards.add("acc-at-exit", left.site, message)
        for _, site in self._results:
            message = f"a result in the FIFO of {self._name} is never popped"
            hazards.add("fifo-at-exit", site, message)

    def _fitting(self, rhs: Array, transpose: bool, site: Hashable) -> Array | None:
        size = self._chip.size
        wanted = (2 * size if rhs.dtype.name in _HALF_BYTES else size, size)
        values = rhs.T if transpose else rhs
        if values.shape == wanted:
            return values.copy()
        given = wanted[::-1] if transpose else wanted
        message = f"the pushed weights are {_text(rhs.shape)}, an MXU takes {_text(given)}"
        self._hazards.add("bad-shape", site, message)
        return None

    def _in_range(self, row: int, rows: int, site: Hashable) -> bool:
        chip = self._chip
        if row >= 0 and row + rows <= chip.rows:
            return True
        has = f"{chip.rows} accumulator rows" if chip.rows else "no accumulators"
        message = f"rows {row} to {row + rows - 1} are used, an MXU of {chip.kind} has {has}"
        self._hazards.add("acc-out-of-range", site, message)
        return False

    def _held(self, span: slice) -> list[_Sum]:
        return [held for held in dict.fromkeys(self._sums[span]) if held is not None]

    def _check_pop(self, span: slice, whole: bool, dtype: np.dtype[Any], site: Hashable) -> None:
        popped, held = self._sums[span], self._held(span)
        filled = sum(one is not None for one in popped)
        rows = f"rows {span.start} to {span.stop - 1} of {self._name}"
        if not filled:
            message = f"{rows} are popped before anything is accumulated: that gives zeros"
            self._hazards.add("pop-empty", site, message, "note")
        elif filled < len(popped):
            message = f"{rows} are popped, but only {filled} of them were accumulated"
            self._hazards.add("pop-partial", site, message)
        for one in held:
            if one.whole != whole:
                kind = "integers" if one.whole else "floats"
                message = f"{one.site} accumulates {kind}, which are popped as {dtype.name}"
                self._hazards.add("pop-dtype", site, message)


def _text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a scalar"
