"""A model of all matrix units (MXUs) of a TPU core, fed in program order.

Nothing here raises for what a program does: see `mxu.py` for what happens instead.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np

from .arithmetic import Array, is_whole, undefined
from .hazards import Hazard, Hazards
from .mxu import Chip, Mxu

__all__ = ["CHIPS", "Chip", "Hazard", "Machine"]

CHIPS: dict[str, Chip] = {
    chip.kind: chip
    for chip in (
        Chip("TPU v4", mxus=4, size=128, rows=0),
        Chip("TPU v5 lite", mxus=4, size=128, rows=0),
        Chip("TPU v5", mxus=4, size=128, rows=0),
        Chip("TPU v6 lite", mxus=2, size=256, rows=0),
        Chip("TPU7x", mxus=2, size=256, rows=1024),
    )
}
"""By device kind: `num_mxus`, `mxu_column_size` and 8 rows for each of `num_accumulators` in
jax/_src/tpu_info.py. That there are two staging registers is what libtpu says of a third."""


class Kept(Protocol):
    """What somebody keeps with a machine until its next reset."""

    def tell_left(self, hazards: Hazards) -> None:
        """Add what a kernel leaves behind if it ends now."""


class Machine:
    """The MXUs of one core. All methods may be called from any thread.

    `site` names the place of an operation in the user's code; it comes back in the hazards.
    `operations` counts those since the last reset, `accumulations` the products among them.
    `kept` is for the caller, which reads and writes it in program order.
    """

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything: a chip on which nothing has run."""
        with self._lock:
            self.operations = self.accumulations = 0
            self.kept: dict[Hashable, Kept] = {}
            self._hazards = Hazards()
            self._mxus = [Mxu(self.chip, n, self._hazards) for n in range(self.chip.mxus)]

    def push(self, register: int, mxu: int, rhs: Array, transpose: bool, site: Hashable) -> None:
        """Put weights, a matrix of (size, size), into a staging register."""
        with self._lock:
            self.operations += 1
            unit = self._unit(mxu, site)
            if unit is not None and self._has_register(register, site):
                unit.push(register, rhs, transpose, site)

    def accumulate(self, mxu: int, row: int, lhs: Array, load: int | None, site: Hashable) -> None:
        """Add `lhs @ weights` to the accumulator rows from `row`, in float32 or int32.

        With `load`, the weights are first taken from that staging register.
        """
        with self._lock:
            unit = self._loaded(mxu, load, site)
            if unit is not None:
                unit.accumulate(row, lhs, site)

    def product(self, mxu: int, lhs: Array, load: int | None, site: Hashable) -> Array:
        """`lhs @ weights`: float32 or int32 of (rows of `lhs`, size)."""
        with self._lock:
            unit = self._loaded(mxu, load, site)
            if unit is not None:
                return unit.product(lhs, site)[0]
            dtype = np.dtype(np.int32 if is_whole(lhs.dtype) else np.float32)
            return undefined((lhs.shape[0], self.chip.size), dtype)

    def pop(self, mxu: int, row: int, rows: int, dtype: np.dtype[Any], site: Hashable) -> Array:
        """The accumulator rows from `row`, (rows, size) of `dtype`. They are zero then."""
        with self._lock:
            self.operations += 1
            unit = self._unit(mxu, site)
            if unit is None:
                return undefined((rows, self.chip.size), np.dtype(dtype))
            return unit.pop(row, rows, np.dtype(dtype), site)

    def enqueue(self, mxu: int, lhs: Array, load: int | None, site: Hashable) -> None:
        """Put `lhs @ weights` into the result FIFO of an MXU."""
        with self._lock:
            unit = self._loaded(mxu, load, site)
            if unit is not None:
                unit.enqueue(lhs, site)

    def dequeue(
        self, mxu: int, shape: tuple[int, ...], dtype: np.dtype[Any], site: Hashable
    ) -> Array:
        """The oldest result in the FIFO of an MXU, of the shape and dtype asked for."""
        with self._lock:
            self.operations += 1
            unit = self._unit(mxu, site)
            if unit is None:
                return undefined(tuple(shape), np.dtype(dtype))
            return unit.dequeue(tuple(shape), np.dtype(dtype), site)

    def staged(self, register: int) -> list[int]:
        """The MXUs whose staging register of this number holds weights."""
        with self._lock:
            if not 0 <= register < self.chip.registers:
                return []
            return [n for n, unit in enumerate(self._mxus) if unit.is_staged(register)]

    def holding(self) -> list[int]:
        """The MXUs that hold weights to multiply with."""
        with self._lock:
            return [n for n, unit in enumerate(self._mxus) if unit.has_weights]

    def report(self, kind: str, site: Hashable, message: str) -> None:
        """Add an error that the caller has seen to the hazards."""
        with self._lock:
            self._hazards.add(kind, site, message)

    def hazards(self) -> list[Hazard]:
        """What was wrong since the last reset, and what is left behind if the program ends now."""
        with self._lock:
            hazards = self._hazards.copy()
            for left in (*self._mxus, *self.kept.values()):
                left.tell_left(hazards)
            return hazards.told()

    def _unit(self, mxu: int, site: Hashable) -> Mxu | None:
        if 0 <= mxu < self.chip.mxus:
            return self._mxus[mxu]
        message = f"there is no MXU {mxu}: {self.chip.kind} has MXUs 0 to {self.chip.mxus - 1}"
        self._hazards.add("bad-index", site, message)
        return None

    def _has_register(self, register: int, site: Hashable) -> bool:
        if 0 <= register < self.chip.registers:
            return True
        message = f"there is no staging register {register}: use 0 to {self.chip.registers - 1}"
        self._hazards.add("bad-index", site, message)
        return False

    def _loaded(self, mxu: int, load: int | None, site: Hashable) -> Mxu | None:
        """The MXU after it has loaded its weights; None if it or the register does not exist."""
        self.operations += 1
        self.accumulations += 1
        unit = self._unit(mxu, site)
        if unit is None or load is None:
            return unit
        if not self._has_register(load, site):
            return None
        unit.load(load, site)
        return unit
