"""The numbers that a kernel computes: kept on disk, told in digests, compared.

One set of inputs gives one file `<index>.npz` with the bytes of each output, and one event:

    inputs    what kind of numbers went in, see `inputs.KINDS`
    seed      of the random generator
    outputs   for each: {type, digest, undefined, constant}; `undefined` counts NaN
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import ml_dtypes
import numpy as np


def keep(results: list[Any], folder: str, index: int) -> list[dict[str, Any]]:
    """Save the outputs of one set of inputs; returns what is told of each."""
    arrays = [_plain(result) for result in results]
    raw = {f"bytes{n}": np.frombuffer(array.tobytes(), np.uint8) for n, array in enumerate(arrays)}
    names = np.array([array.dtype.name for array in arrays])
    shapes = {f"shape{n}": np.array(array.shape, np.int64) for n, array in enumerate(arrays)}
    np.savez(_file(folder, index), names=names, **raw, **shapes)
    return [_told(array) for array in arrays]


def difference(
    before: str, after: str, index: int, *, unit: float | None, steps: int, exact: bool
) -> dict[str, Any]:
    """How the outputs of one set of inputs differ: {answer, message}.

    `answer` is `same`, `differs`, `undefined` (NaN before, so there is nothing to compare with; or
    zeros of another sign) or `close`. The last one only with a `unit`, the rounding unit of a fix
    that reorders sums: `steps` roundings of numbers up to the largest of the output. With `exact`
    inputs no sum is ever rounded, so any order gives the same bits.
    """
    worst = {"answer": "same", "message": ""}
    pairs = zip(_load(before, index), _load(after, index), strict=True)
    for number, (old, new) in enumerate(pairs):
        answer, message = _compare(old, new, None if exact else unit, steps)
        if _WORSE.index(answer) > _WORSE.index(worst["answer"]):
            shape = ",".join(map(str, old.shape))
            head = f"output {number} ({old.dtype.name}[{shape}])"
            worst = {"answer": answer, "message": f"{head}: {message}"}
    return worst


_WORSE = ("same", "close", "undefined", "differs")


def _compare(
    old: np.ndarray[Any, Any], new: np.ndarray[Any, Any], unit: float | None, steps: int
) -> tuple[str, str]:
    if old.tobytes() == new.tobytes() and not _undefined(old):
        return "same", ""
    lost, gone = _wide(old), _wide(new)
    unknown = np.isnan(lost)
    appeared = np.isnan(gone) & ~unknown
    if appeared.any():
        where = _first(appeared)
        return "differs", f"{int(appeared.sum())} numbers are undefined after, the first {where}"
    with np.errstate(invalid="ignore", over="ignore"):
        unequal = (lost != gone) & ~unknown
        distance = np.where(unequal, np.abs(lost - gone), 0.0)
    if unequal.any():
        largest = float(np.nanmax(distance))
        bound = (unit or 0.0) * steps * float(np.nanmax(np.abs(lost[np.isfinite(lost)]), initial=0))
        at = tuple(np.argwhere(unequal)[0])
        text = (
            f"{int(unequal.sum())} of {unequal.size} numbers differ, by up to {largest:.3g}, "
            f"the first {_first(unequal)}: {lost[at]:.9g} before, {gone[at]:.9g} after"
        )
        if unit and largest <= bound:
            return "close", f"{text}; the bound is {bound:.3g}"
        return "differs", text
    if unknown.any():
        return "undefined", f"{int(unknown.sum())} numbers are undefined before the fix"
    return "undefined", "zeros have another sign"


def _first(mask: np.ndarray[Any, Any]) -> str:
    return f"at [{', '.join(str(int(i)) for i in np.argwhere(mask)[0])}]"


def _plain(result: Any) -> np.ndarray[Any, Any]:
    if isinstance(result, np.ndarray):
        return result
    import jax  # who only compares does without

    if jax.dtypes.issubdtype(result.dtype, jax.dtypes.prng_key):
        result = jax.random.key_data(result)
    return np.asarray(result)


def _told(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    head = f"{array.dtype.name}{array.shape}".encode()
    data = array.tobytes()
    flat = array.reshape(-1)
    return {
        "type": f"{array.dtype.name}[{','.join(map(str, array.shape))}]",
        "digest": hashlib.sha256(head + data).hexdigest(),
        "undefined": _undefined(array),
        "constant": bool(array.size) and data == flat[:1].tobytes() * array.size,
    }


def _undefined(array: np.ndarray[Any, Any]) -> int:
    return int(np.isnan(_wide(array)).sum())


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """As float64 or complex128, in which every value of the smaller types has its place."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64)


def _file(folder: str, index: int) -> str:
    return os.path.join(folder, f"{index}.npz")


def _load(folder: str, index: int) -> list[np.ndarray[Any, Any]]:
    with np.load(_file(folder, index), allow_pickle=False) as kept:
        return [
            np.frombuffer(kept[f"bytes{n}"].tobytes(), _dtype(str(name))).reshape(kept[f"shape{n}"])
            for n, name in enumerate(kept["names"])
        ]


def _dtype(name: str) -> np.dtype[Any]:
    """NumPy knows the small floats by the types of ml_dtypes only."""
    return np.dtype(getattr(ml_dtypes, name, name))
