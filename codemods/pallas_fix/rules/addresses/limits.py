"""Why accumulators that are named by address cannot become refs, if they cannot.

What `pltpu.ACC` can be: `check_accumulator_ref` in jax/_src/pallas/mosaic/core.py. An address
counts vector registers of 8 rows and 128 columns (`base_address` in mosaic/lowering.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

from pallas_fix.facts import Facts
from pallas_fix.facts.linear import Linear
from pallas_fix.rules.addresses.lives import Room
from pallas_fix.rules.addresses.sites import Key, Use, integer, order
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import ACC_DTYPES
from pallas_fix.rules.mxu.index import ENTRIES, MXUS

COLUMNS = 256
_ROWS = 8
_STEP = COLUMNS // 128
"""Registers for each 8 rows of an accumulator."""

Shape = tuple[int | None, ...]


def unclear(module: Facts, uses: Sequence[Use]) -> tuple[Use, Reason] | None:
    """The first use of a walk of which it is not known which accumulator it names."""
    for use in uses:
        line = module.span(use.call).line
        if not use.known:
            return use, Reason(
                "unknown-order",
                f"line {line} is in a function that is handed to code pallas-fix does not follow",
                "allocate a pltpu.ACC with pl.run_scoped by hand, and pass it on",
            )
        if integer(use.where.at) is None and not isinstance(use.where.at, Linear):
            return use, Reason(
                "dynamic-address",
                f"the address in line {line} is not a number that follows from this file, and "
                "which accumulator it names decides what becomes of it",
                "write the address as a constant, or from the variable of a Python loop over "
                "range(n); accumulators cannot be chosen at run time: use pl.when or lax.cond "
                "with one ref in each branch",
            )
        mxu = integer(use.where.mxu)
        if mxu is None:
            return use, Reason(
                "dynamic-mxu",
                f"the mxu_index in line {line} is not a number that follows from this file",
                "write the index as a constant, or from the variable of a Python loop over "
                "range(n)",
            )
        if not 0 <= mxu < MXUS:
            return use, Reason(
                "no-such-mxu",
                f"line {line} names MXU {mxu}, and a TPU7x has {MXUS}",
                "name one that exists",
            )
    return None


def impossible(module: Facts, room: Room) -> tuple[Use, Reason] | None:
    """What no accumulator refs of one scope can do, and where."""
    shapes: dict[Key, Shape] = {}
    for key in room.keys:
        own = room.of(key)
        refused = _incomplete(module, room, key, own) or _bad_type(module, key, own)
        if refused is not None:
            return own[0], refused
        shapes[key] = merged([use.where.shape for use in own if use.pops])
    for key, other in combinations(room.keys, 2):
        refused = _overlap(key, shapes[key], other) or _distance(room, key, other)
        if refused is not None:
            return room.of(other)[0], refused
    return None


def proven(room: Room) -> bool:
    """True if the accumulators are certain not to overlap."""
    for lower, upper in combinations(room.keys, 2):
        numbers = isinstance(lower[1], int) and isinstance(upper[1], int)
        shape = merged([use.where.shape for use in room.of(lower) if use.pops])
        if lower[0] == upper[0] and numbers and shape[0] is None:
            return False
    return True


def merged(shapes: Sequence[Shape | None]) -> Shape:
    """What is known of a shape of which several places say something."""
    known = [shape for shape in shapes if shape is not None]
    if not known:
        return (None, None)
    return tuple(next((n for n in of if n is not None), None) for of in zip(*known, strict=False))


def extent(key: Key, shape: Shape) -> range | None:
    """The addresses that an accumulator takes up, where that is known."""
    rows, at = shape[0], key[1]
    if rows is None or isinstance(at, Linear):
        return None
    return range(at, at + rows // _ROWS * _STEP)


def _incomplete(module: Facts, room: Room, key: Key, own: Sequence[Use]) -> Reason | None:
    mxu, address = key
    name = f"the accumulator at address {address} of MXU {mxu}"
    pops, accs = [use for use in own if use.pops], [use for use in own if not use.pops]
    around = [
        other
        for other in room.keys
        if other != key and _holds(other, merged([u.where.shape for u in room.of(other)]), key)
    ]
    if around and not (pops and accs):
        return Reason(
            "several-parts",
            f"{name} is a part of the one at address {around[0][1]}, which is accumulated and "
            "popped in other parts; the rows of a ref are those of each matmul and of the pop",
            "use one accumulator for each matmul, and put the popped values together",
        )
    if not pops:
        return Reason(
            "no-pop",
            f"{name} is accumulated in line {_lines(module, accs)}, but never popped there: only "
            "a pop says what shape and dtype it has",
            "allocate pltpu.ACC(mxu_index)((rows, 256), dtype) where it begins and is popped",
        )
    if not accs:
        return Reason(
            "no-accumulation",
            f"{name} is popped in line {_lines(module, pops)}, but nothing there accumulates in "
            "it: a ref would be empty",
            "allocate the ref around the accumulation and the pop, and pass it to both",
        )
    return None


def _holds(other: Key, shape: Shape, key: Key) -> bool:
    taken = extent(other, shape)
    known = taken is not None and isinstance(key[1], int)
    return other[0] == key[0] and known and taken is not None and key[1] in taken


def _bad_type(module: Facts, key: Key, own: Sequence[Use]) -> Reason | None:
    pops = [use for use in own if use.pops]
    shapes = {use.where.shape for use in pops if use.where.shape is not None}
    dtypes = {module.constants.dtype(use.dtype) for use in pops} - {None}
    if _contradict(shapes) or len(dtypes) > 1:
        return Reason(
            "several-shapes",
            f"the accumulator at address {key[1]} of MXU {key[0]} is popped as several types "
            f"(line {_lines(module, pops)}), and a ref has one",
            "use one accumulator for each shape and dtype, each in a pl.run_scoped of its own",
        )
    rows, columns, *rest = [*merged(list(shapes)), None][:3] if shapes else (None, None, None)
    if rest != [None] or any(len(shape) != 2 for shape in shapes):
        return Reason("rank", "the popped shape has not two dimensions", "pop (rows, 256)")
    if columns not in (None, COLUMNS):
        return Reason(
            "minor-dimension",
            f"{columns} columns are popped, and an accumulator has {COLUMNS}",
            "tile the columns by 256, one accumulator each",
        )
    if rows is not None and (rows <= 0 or rows % _ROWS):
        return Reason(
            "row-count",
            f"{rows} rows are popped, and an accumulator takes a multiple of {_ROWS} (16 for bf16 "
            "operands, 32 for 8-bit ones)",
            "pad the rows of the left operand, and cut the popped value",
        )
    if dtypes - ACC_DTYPES:
        return Reason(
            "acc-dtype",
            f"{min(map(str, dtypes))} is popped, and an accumulator is float32 or int32",
            "pop float32, and cast the value",
        )
    taken = extent(key, (rows, columns))
    below = isinstance(key[1], int) and key[1] < 0
    if below or (taken is not None and taken.stop > ENTRIES * _STEP):
        return Reason(
            "accumulator-space",
            f"an accumulator of {rows} rows at address {key[1]} ends at entry "
            f"{taken.stop // _STEP if taken else 0}, and an MXU of a TPU7x has {ENTRIES} "
            "entries of 8 rows",
            "use smaller tiles, the other MXU, or one pl.run_scoped after the other",
        )
    return None


def _contradict(shapes: set[Shape]) -> bool:
    return any(
        len(one) != len(two)
        or any(a is not None and b is not None and a != b for a, b in zip(one, two, strict=True))
        for one, two in combinations(shapes, 2)
    )


def _overlap(key: Key, shape: Shape, other: Key) -> Reason | None:
    """`other` lies behind `key`."""
    taken = extent(key, shape)
    if key[0] != other[0] or taken is None or isinstance(other[1], Linear):
        return None
    if other[1] >= taken.stop:
        return None
    rows = shape[0]
    return Reason(
        "overlap",
        f"{rows} rows at address {key[1]} of MXU {key[0]} reach to address {taken.stop - 1}, and "
        f"another accumulator begins at {other[1]}: {rows} rows are {len(taken)} registers "
        "(rows // 8 * 2)",
        "if they are two accumulators, give the second the first address behind the first one; "
        "if one is a part of the other, use one accumulator for each matmul",
    )


def _distance(room: Room, key: Key, other: Key) -> Reason | None:
    """Addresses that are sums are apart if it is by the rows of the lower one, at the least."""
    if key[0] != other[0] or not any(isinstance(one[1], Linear) for one in (key, other)):
        return None
    apart = order(other)[1].plus(order(key)[1].times(Fraction(-1)))
    for lower, sign in ((key, 1), (other, -1)):
        rows = {use.where.rows for use in room.of(lower) if use.pops}
        known = rows.pop() if len(rows) == 1 else None
        times = apart.ratio(known) if isinstance(known, Linear) else None
        if times is not None and times * sign >= Fraction(_STEP, _ROWS):
            return None
    return Reason(
        "unknown-distance",
        f"the accumulators at the addresses {key[1]} and {other[1]} may overlap: their distance "
        "does not follow from the rows that are popped",
        "write the addresses and the shape with the same name: m // 8 * 2, and (m, 256)",
    )


def _lines(module: Facts, own: Sequence[Use]) -> str:
    return " and ".join(map(str, sorted(set(_line_numbers(module, own)))))


def _line_numbers(module: Facts, own: Sequence[Use]) -> Iterator[int]:
    return (module.span(use.call).line for use in own)
