"""The scope of a room: `pl.run_scoped` around the code that uses its accumulators."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_fix.edits import Edit
from pallas_fix.facts import Facts
from pallas_fix.rules.addresses.bodies import Body
from pallas_fix.rules.addresses.choosing import Collection
from pallas_fix.rules.addresses.lives import Room
from pallas_fix.rules.addresses.places import Places
from pallas_fix.rules.addresses.sites import Key
from pallas_fix.rules.addresses.types import Type, types_of
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.mxu.scoping import scope_edit, unscopable

_WIDTH = 88
"""Lines longer than this are broken."""


def scope(module: Facts, room: Room, found: Places) -> list[Edit] | Reason:
    """Run the body of a function in a scope with the accumulators that it names."""
    names = [name for name, _ in found.names]
    reason = unscopable(module, room.function, names)
    body = Body(module, room.function, found.nodes, whole=reason is None)
    if reason is not None and body.start is None:
        return reason
    types = types_of(module, room, body)
    if isinstance(types, Reason):
        return types
    read = [expr for made in types.values() for expr in made.reads]
    split = reason is not None or any(map(body.own, read))
    at = room.function.body if isinstance(room.function, ast.Lambda) else room.function.body[0]
    writer = Writer(module, at)
    text = _listed([_written(writer, what, types) for _, what in found.names], room, writer)
    first = module.span(body.start) if split and body.start is not None else None
    edit = scope_edit(module, room.function, names, text, writer, first)
    return [edit, *writer.imports]


def _listed(texts: Sequence[str], room: Room, writer: Writer) -> str:
    """The types in one line, or each in its own where they are long."""
    one = ", ".join(texts)
    shown = one
    for hole, span in writer.parts.items():
        shown = shown.replace(f"${hole}", "x" * max(0, span.end_column - span.column), 1)
    indent = room.function.col_offset + len("    pl.run_scoped(scope, )")
    if indent + len(shown) <= _WIDTH or isinstance(room.function, ast.Lambda):
        return one
    return "".join(f"\n    {text}," for text in texts) + "\n"


def _written(writer: Writer, what: Key | Collection, types: dict[Key, Type]) -> str:
    if not isinstance(what, Collection):
        return _one(writer, types[what])
    if what.parts:
        return _dict(writer, what, types)
    mxus = [key[0] for key in what.keys]
    count = len(mxus)
    if len({_source(writer.module, types[key]) for key in what.keys}) == 1 and count > 1:
        first = types[what.keys[0]]
        if mxus == list(range(count)):
            mxu = _variable("mxu", first)
            return f"[{_one(writer, first, mxu)} for {mxu} in range({count})]"
        if len(set(mxus)) == 1:
            return f"[{_one(writer, first)} for _ in range({count})]"
    return f"[{', '.join(_one(writer, types[key]) for key in what.keys)}]"


def _dict(writer: Writer, what: Collection, types: dict[Key, Type]) -> str:
    first = types[what.keys[0]]
    units, addresses = (tuple(sorted({key[n] for key in what.keys})) for n in (0, 1))
    alike = len({_source(writer.module, types[key]) for key in what.keys}) == 1
    if not alike or len(units) * len(addresses) != len(what.keys):
        entries = (f"{what.index(key)!r}: {_one(writer, types[key])}" for key in what.keys)
        return f"{{{', '.join(entries)}}}"
    mxu, address = _variable("mxu", first), _variable("address", first)
    loops = {0: f"for {mxu} in {units}", 1: f"for {address} in {addresses}"}
    name = ", ".join((mxu, address)[part] for part in what.parts)
    made = _one(writer, first, mxu if 0 in what.parts else None)
    key = f"({name})" if len(what.parts) > 1 else name
    return f"{{{key}: {made} {' '.join(loops[part] for part in what.parts)}}}"


def _variable(base: str, made: Type) -> str:
    """A name for the variable of a comprehension around the type of an accumulator."""
    used = {n.id for part in made.reads for n in ast.walk(part) if isinstance(n, ast.Name)}
    return base if base not in used else f"{base}_"


def _one(writer: Writer, made: Type, mxu: str | None = None) -> str:
    """The type of one accumulator; `mxu` is the variable of a comprehension around it."""
    own, shape, dtype = (
        writer.hole(part.node) if part.node is not None else part.text
        for part in (made.mxu, made.shape, made.dtype)
    )
    if made.dtype.public:
        dtype = writer.name(dtype)
    return f"{writer.name('pltpu.ACC')}({mxu or own})({shape}, {dtype})"


def _source(module: Facts, made: Type) -> tuple[str, str]:
    shape, dtype = (
        module.source(part.node) if part.node is not None else part.text
        for part in (made.shape, made.dtype)
    )
    return shape, dtype
