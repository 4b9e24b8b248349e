"""Runs the text of a kernel file in a worker's run stage; the tests' own process never has jax."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np

from pallas_fix.targets import find_target
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.ends import Limits
from pallas_fix.verify.jobs import describe
from pallas_fix.verify.verdict import Hazard, StageResult
from pallas_fix.verify.workers import Workers

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Run:
    """How a file ran: `arrays` has what the entry returned, for each seed."""

    arrays: list[list[Array]]
    hazards: tuple[Hazard, ...]
    ran_on: str
    steps: int
    stages: tuple[StageResult, ...]

    @property
    def failure(self) -> str:
        """`Type: message` of the stage that failed, or why it is not available; else empty."""
        last = self.stages[-1]
        return "" if last.ok else f"{last.error}: {last.message}" if last.error else last.message

    @property
    def kinds(self) -> list[str]:
        """`kind where` of each hazard, sorted."""
        return sorted(f"{hazard.kind} {hazard.where}" for hazard in self.hazards)


class Emulator:
    """A warm worker; each file runs in a fork of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers = Workers(folder, Limits(wall=120, output=1 << 20, memory=8 << 30))

    def close(self) -> None:
        self._workers.close()

    def run(
        self,
        text: str,
        case: str = "main()",
        *,
        target: str = "tpu7x",
        oracle: bool = False,
        races: bool = False,
        seeds: int = 1,
        inputs: str = "plain",
        files: dict[str, str] | None = None,
    ) -> Run:
        """Run the entry of a case of `mod.py`, which has this text, once for each seed.

        `inputs` is the kind of numbers that go in (`KINDS` of worker/inputs.py).
        """
        root = Path(tempfile.mkdtemp(dir=self._folder))
        text = dedent(text)
        for name, content in ((files or {}) | {"mod.py": text}).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(dedent(content))
        job = describe(root, Path("mod.py"), root, text, parse_case(case))
        numbers = root / "numbers"
        job |= {
            "mode": "run",
            "until": "run",
            "oracle": oracle,
            "races": races,
            "runs": [(inputs, seed) for seed in range(seeds)],
            "numbers": str(numbers),
        }
        outcome = self._workers.run(Path(sys.executable), find_target(target), False, job)
        return Run(
            [_load(numbers / f"{index}.npz") for index in range(len(outcome.numbers))],
            outcome.hazards,
            outcome.ran_on,
            outcome.steps,
            tuple(outcome.stages),
        )


@contextmanager
def emulator() -> Iterator[Emulator]:
    """An `Emulator` in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="emulated-") as folder:
        one = Emulator(Path(folder).resolve())
        try:
            yield one
        finally:
            one.close()


def assert_close(result: Run) -> None:
    """Assert that the outputs, in pairs of what came and what was wanted, agree within rounding."""
    [arrays] = result.arrays
    assert len(arrays) % 2 == 0
    for number, (got, want) in enumerate(zip(arrays[::2], arrays[1::2], strict=True)):
        assert got.dtype == want.dtype
        if got.dtype.kind == "i":
            np.testing.assert_array_equal(got, want, err_msg=f"output {number}")
        else:
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-3, err_msg=f"output {number}")


def line_of(text: str, part: str) -> str:
    """`mod.py:line` of the one line that holds a part of the text."""
    [number] = [n for n, one in enumerate(text.split("\n"), 1) if part in one]
    return f"mod.py:{number}"


def _load(path: Path) -> list[Array]:
    """The arrays of one run; those of types that NumPy does not know as bytes."""
    with np.load(path, allow_pickle=False) as kept:
        return [
            _array(kept[f"bytes{n}"], str(name), tuple(kept[f"shape{n}"]))
            for n, name in enumerate(kept["names"])
        ]


def _array(data: Array, name: str, shape: tuple[int, ...]) -> Array:
    known = name in np.sctypeDict
    return data.view(np.dtype(name)).reshape(shape) if known else data
