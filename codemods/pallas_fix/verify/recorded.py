"""Recorded cases: the launches that a command made, as its processes told of them."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pallas_fix.verify.arguments import Array, Group, Key, Value
from pallas_fix.verify.cases import Case, CaseError, parse_case
from pallas_fix.verify.verdict import Hazard

MOST_CASES = 8
"""Recorded cases that speak of one file; more say little that is new, and each takes its time."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A case, the kernel that it launches (its name, its `file:line`), and who recorded it.

    `files` are those of the project whose functions it enters. All paths are relative to one
    folder.
    """

    case: Case
    kernel: str
    where: str
    command: str
    files: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many numbers the case takes."""
        values = (*self.case.args, *(value for _, value in self.case.kwargs))
        return sum(map(_size, values))

    @property
    def kind(self) -> tuple[str, str, str]:
        """What it has in common with cases that differ in their shapes alone."""
        return self.kernel, self.where, re.sub(r"\[[\d,]*\]", "[]", str(self.case))


@dataclass(slots=True)
class Told:
    """What the processes of one command told.

    `refused` counts the launches that no case can say, by the reason. `entered` has the qualified
    names of the functions that ran, by file. `tests` are those that pytest began, in order, and
    `unfinished` the one in which its process ended.
    """

    launches: int = 0
    kernels: set[tuple[str, str]] = field(default_factory=set)
    recorded: list[Recorded] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    entered: dict[str, set[str]] = field(default_factory=dict)
    ran_on: list[str] = field(default_factory=list)
    hazards: list[Hazard] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    unfinished: str = ""


def read_journal(path: Path, command: str) -> Told:
    """What is in the journal at `path`, of which the last line may be cut off."""
    told = Told()
    launches: dict[str, dict[str, Any]] = {}
    hazards: dict[tuple[str, str], Hazard] = {}
    pending: dict[str, None] = {}
    run = None
    for event in _events(path):
        match event:
            case {"event": "launch", **launch}:
                files = launch.pop("files")
                known = launches.setdefault(json.dumps(launch), launch | {"files": []})
                known["files"] = sorted({*known["files"], *files})
            case {"event": "entered", "file": file, "name": name}:
                told.entered.setdefault(file, set()).add(name)
            case {"event": "ran", "on": place}:
                told.ran_on += [place] if place not in told.ran_on else []
            case {"event": "note", "message": message}:
                told.notes += [message] if message not in told.notes else []
            case {"event": "hazard", "severity": severity, **hazard}:
                one = Hazard(serious=severity == "error", **hazard)
                hazards.setdefault((one.kind, one.where), one)
            case {"event": "tests", "run": run}:
                pending.clear()
            case {"event": "test", "id": test}:
                told.tests += [test] if test not in told.tests else []
                pending[test] = None
            case {"event": "tested", "id": test}:
                pending.pop(test, None)
            case {"event": "no more tests", "run": ended} if ended == run:
                run = None
    told.ran_on.sort(key=lambda place: "emulated" in place)  # what says more comes last
    told.hazards += hazards.values()
    if run is not None:
        told.unfinished = next(iter(pending), "")
    _sort_out(told, launches.values(), command)
    return told


def merged(found: Iterable[Recorded]) -> list[Recorded]:
    """Each case once, in the order of their texts; with the files of all that have it."""
    known: dict[tuple[str, str, str], Recorded] = {}
    for one in found:
        key = (str(one.case), one.where, one.kernel)
        first = known.setdefault(key, one)
        known[key] = replace(first, files=tuple(sorted({*first.files, *one.files})))
    return [known[key] for key in sorted(known)]


def rebased(one: Recorded, base: Path, root: Path) -> Recorded | None:
    """A case with paths relative to `base` as one with paths relative to `root`.

    None where its entry is not below `root`.
    """
    if base == root:
        return one

    def moved(path: str) -> str:
        return os.path.relpath(base / path, root)

    path = moved(one.case.path or "")
    if path.startswith(os.pardir):
        return None
    file, colon, line = one.where.rpartition(":")
    where = f"{moved(file)}{colon}{line}" if os.path.isfile(base / file) else one.where
    files = tuple(sorted(map(moved, one.files)))
    return replace(one, case=replace(one.case, path=path), where=where, files=files)


def chosen(found: Sequence[Recorded], most: int = MOST_CASES) -> list[Case]:
    """The cases to verify with: of each kind the smallest, then the next, up to `most`."""
    kinds: dict[tuple[str, str, str], list[Recorded]] = {}
    for one in sorted(found, key=lambda one: (one.size, str(one.case))):
        kinds.setdefault(one.kind, []).append(one)
    rounds = range(max(map(len, kinds.values()), default=0))
    order = [kind[n] for n in rounds for kind in kinds.values() if n < len(kind)]
    return list(dict.fromkeys(one.case for one in order))[:most]


def _events(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _sort_out(told: Told, launches: Iterable[dict[str, Any]], command: str) -> None:
    found = []
    for launch in launches:
        told.launches += 1
        kernel, where = str(launch["kernel"]), str(launch["where"])
        told.kernels.add((kernel, where))
        if not launch["case"]:
            told.refused[str(launch["refused"])] += 1
            continue
        try:
            case = parse_case(str(launch["case"]))
        except CaseError as error:
            told.refused[error.message] += 1
            continue
        found.append(Recorded(case, kernel, where, command, tuple(launch["files"])))
    told.recorded = merged(found)


def _size(value: Value) -> int:
    match value:
        case Array(shape=shape) | Key(shape=shape):
            return math.prod(shape)
        case Group(items=items):
            return sum(map(_size, items))
    return 0
