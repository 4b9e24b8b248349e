"""Jobs as the worker reads them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from pallas_fix.dtypes import DTYPES
from pallas_fix.verify.arguments import KEYS, Array, Dtype, Group, Key, Literal, Value
from pallas_fix.verify.cases import Case
from pallas_fix.verify.shadow import place

Job = dict[str, Any]

PLAIN = (("plain", 0), ("plain", 1))
"""The sets of inputs that every kernel runs on: their kind and seed."""

REORDERED = (("exact", 2), ("positive", 3))
"""Those that a fix is held to besides which reorders a sum (`worker/inputs.py`, KINDS)."""


def describe(root: Path, path: Path, view: Path, text: str, case: Case) -> Job:
    """A job but for its mode, its limits and its folders.

    `path` is the file, relative to the project's `root`; `view` the copy of the project in which
    the file has this `text`.
    """
    entry = Path(case.path) if case.path else path
    if entry != path:
        try:
            text = (view / entry).read_text(encoding="utf-8")
        except (OSError, ValueError):
            text = ""
    where = place(view, entry, text)
    return {
        "origin": str(root),
        "root": str(view),
        "file": str(path),
        "entry_file": str(entry),
        "module": where.module,
        "search": [str(view / folder) for folder in where.search],
        "entry": case.entry,
        "maker": case.maker,
        "args": [_encode(value) for value in case.args],
        "kwargs": [(name, _encode(value)) for name, value in case.kwargs],
    }


def _encode(value: Value) -> Job:
    match value:
        case Array(dtype=dtype, shape=shape, values=values):
            numbers = asdict(values) if values else None
            return {"array": DTYPES[dtype], "shape": shape, "values": numbers}
        case Key(kind=kind, shape=shape):
            return {"key": KEYS[kind], "shape": shape}
        case Dtype(kind=kind, name=name):
            return {"dtype": kind, "name": DTYPES[name]}
        case Literal():
            return {"literal": repr(value.value)}
        case Group(bracket=bracket, items=items, keys=keys):
            return {
                "group": bracket,
                "items": [_encode(item) for item in items],
                "keys": [repr(key.value) for key in keys],
            }
