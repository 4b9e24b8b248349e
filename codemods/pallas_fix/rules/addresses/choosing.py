"""One of several accumulators, chosen by a number that the code has where it needs one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Code
from pallas_fix.facts import Facts
from pallas_fix.facts.linear import Linear
from pallas_fix.facts.values import Known
from pallas_fix.rules.addresses.sites import Key, Use, integer, order
from pallas_fix.rules.base import Reason


@dataclass(frozen=True, slots=True)
class Collection:
    """Accumulators of which code chooses one by a number: a list, or a dict by `parts` of keys."""

    keys: tuple[Key, ...]
    parts: tuple[int, ...] = ()

    def index(self, key: Key) -> object:
        """What stands between the brackets for a key."""
        if not self.parts:
            return self.keys.index(key)
        found = tuple(key[part] for part in self.parts)
        return found[0] if len(found) == 1 else found


def collections(sets: Sequence[set[Key]], *, lists: bool) -> dict[Key, Collection]:
    """The collection of each key: keys of one set, and of sets that meet, are together."""
    groups: list[set[Key]] = []
    for keys in sets:
        joined = [group for group in groups if group & keys]
        groups = [group for group in groups if not group & keys]
        groups.append(keys.union(*joined))
    found: dict[Key, Collection] = {}
    for group in groups:
        keys_in_order = tuple(sorted(group, key=order))
        parts: tuple[int, ...] = ()
        if not lists:
            parts = tuple(n for n in (0, 1) if len({key[n] for key in group}) > 1)
        found |= dict.fromkeys(group, Collection(keys_in_order, parts))
    return found


def entry(
    module: Facts,
    target: ast.expr,
    uses: Sequence[Use],
    collection: Collection,
    name: str,
    lost: Callable[[ast.expr], bool],
) -> Code | Reason:
    """The entry of the collection `name` that the code at `target` means, as it is written there.

    An expression that is `lost` has no number any more.
    """
    keys = [use.key for use in uses if use.key is not None]
    if not collection.parts:
        wanted = [collection.index(key) for key in keys]
        index = _expression(target, uses, wanted, lost, _size)
        return Code(f"{name}[$i]", {"i": module.span(index)}) if index else _no_index()
    if any(isinstance(key[1], Linear) for key in collection.keys):
        return _no_index()
    spans = {}
    for part in collection.parts:
        index = _expression(target, uses, [key[part] for key in keys], lost, lambda e: -_size(e))
        if index is None:
            return _no_index()
        spans[f"i{part}"] = module.span(index)
    return Code(f"{name}[{', '.join(f'${hole}' for hole in spans)}]", spans)


def _expression(
    target: ast.expr,
    uses: Sequence[Use],
    wanted: Sequence[object],
    lost: Callable[[ast.expr], bool],
    size: Callable[[ast.expr], int],
) -> ast.expr | None:
    """The expression of the least size at a place that has these values, one for each use."""
    found = [dict(_values(target, use)) for use in uses]
    fitting = [
        expr
        for expr in found[0]
        if all(of.get(expr) == value for of, value in zip(found, wanted, strict=True))
        and not lost(expr)
    ]
    return min(fitting, key=size, default=None)


def _values(target: ast.expr, use: Use) -> Iterator[tuple[ast.expr, int]]:
    """The integers that are worked out where an address is, with their expressions."""
    yield from _tree(target, use.where.at)
    if target is use.address and use.mxu is not None:
        yield from _tree(use.mxu, use.where.mxu)


def _tree(expr: ast.expr, value: object) -> Iterator[tuple[ast.expr, int]]:
    number = integer(value)
    if number is not None and not isinstance(expr, ast.Constant):
        yield expr, number
    if isinstance(value, Known | Linear) and value.node is expr:
        for part, inner in value.parts:
            yield from _tree(part, inner)


def _size(expr: ast.expr) -> int:
    return sum(1 for _ in ast.walk(expr))


def _no_index() -> Reason:
    return Reason(
        "several-accumulators",
        "one line works on several accumulators, and no number there chooses one",
        "allocate a list of pltpu.ACC, and index it with the variable of the Python loop",
    )
