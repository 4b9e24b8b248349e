"""The scope of a room: `pl.run_scoped` around the code that uses its accumulators."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Edit
from pallas_fix.facts import Facts
from pallas_fix.facts.constants import DType
from pallas_fix.facts.names import Function
from pallas_fix.rules.addresses.choosing import Collection
from pallas_fix.rules.addresses.limits import merged
from pallas_fix.rules.addresses.lives import Room
from pallas_fix.rules.addresses.places import Places
from pallas_fix.rules.addresses.sites import Key, Use
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.mxu.scoping import scope_edit, unscopable

_WIDTH = 88
"""Lines longer than this are broken."""


@dataclass(frozen=True, slots=True)
class Type:
    """The shape and the dtype of an accumulator: expressions, or text where there is none."""

    shape: ast.expr | str
    dtype: ast.expr | str


def scope(module: Facts, room: Room, found: Places) -> list[Edit] | Reason:
    """Run the body of a function in a scope with the accumulators that it names."""
    names = [name for name, _ in found.names]
    reason = unscopable(module, room.function, names)
    body = _Body(module, room.function, found.nodes)
    if reason is not None and body.start is None:
        return reason
    types = _types(module, room, body, whole=reason is None)
    if isinstance(types, Reason):
        return types
    used = [e for t in types.values() for e in (t.shape, t.dtype) if isinstance(e, ast.expr)]
    split = reason is not None or any(body.own(expr) for expr in used)
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
        return _one(writer, str(what[0]), types[what])
    if what.parts:
        return _dict(writer, what, types)
    mxus = [key[0] for key in what.keys]
    count = len(mxus)
    if len({_source(writer.module, types[key]) for key in what.keys}) == 1 and count > 1:
        first = types[what.keys[0]]
        if mxus == list(range(count)):
            mxu = _variable("mxu", first)
            return f"[{_one(writer, mxu, first)} for {mxu} in range({count})]"
        if len(set(mxus)) == 1:
            return f"[{_one(writer, str(mxus[0]), first)} for _ in range({count})]"
    return f"[{', '.join(_one(writer, str(key[0]), types[key]) for key in what.keys)}]"


def _dict(writer: Writer, what: Collection, types: dict[Key, Type]) -> str:
    first = types[what.keys[0]]
    units, addresses = (tuple(sorted({key[n] for key in what.keys})) for n in (0, 1))
    alike = len({_source(writer.module, types[key]) for key in what.keys}) == 1
    if not alike or len(units) * len(addresses) != len(what.keys):
        entries = (
            f"{what.index(key)!r}: {_one(writer, str(key[0]), types[key])}" for key in what.keys
        )
        return f"{{{', '.join(entries)}}}"
    mxu, address = _variable("mxu", first), _variable("address", first)
    loops = {0: f"for {mxu} in {units}", 1: f"for {address} in {addresses}"}
    name = ", ".join((mxu, address)[part] for part in what.parts)
    made = _one(writer, mxu if 0 in what.parts else str(units[0]), first)
    key = f"({name})" if len(what.parts) > 1 else name
    return f"{{{key}: {made} {' '.join(loops[part] for part in what.parts)}}}"


def _variable(base: str, made: Type) -> str:
    """A name for the variable of a comprehension around the type of an accumulator."""
    parts = (part for part in (made.shape, made.dtype) if isinstance(part, ast.expr))
    used = {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
    return base if base not in used else f"{base}_"


def _one(writer: Writer, mxu: str, made: Type) -> str:
    shape, dtype = (
        part if isinstance(part, str) else writer.hole(part) for part in (made.shape, made.dtype)
    )
    if dtype.startswith("jnp."):
        dtype = writer.name(dtype)
    return f"{writer.name('pltpu.ACC')}({mxu})({shape}, {dtype})"


def _source(module: Facts, made: Type) -> tuple[str, str]:
    shape, dtype = (
        part if isinstance(part, str) else module.source(part) for part in (made.shape, made.dtype)
    )
    return shape, dtype


def _types(module: Facts, room: Room, body: _Body, *, whole: bool) -> dict[Key, Type] | Reason:
    found: dict[Key, Type] = {}
    for key in room.keys:
        pops = [use for use in room.of(key) if use.pops]
        shape = _shape(module, pops, body, whole=whole)
        dtype = _dtype(module, pops, body, whole=whole)
        if isinstance(shape, Reason):
            return shape
        if isinstance(dtype, Reason):
            return dtype
        found[key] = Type(shape, dtype)
    return found


def _shape(
    module: Facts, pops: Sequence[Use], body: _Body, *, whole: bool
) -> ast.expr | str | Reason:
    written = [use.shape for use in pops if use.shape is not None]
    values = merged([use.where.shape for use in pops])
    known = len(values) == 2 and None not in values
    if not known and len({ast.dump(expr) for expr in written}) > 1:
        return _unknown("what is popped has several shapes as far as pallas-fix can see")
    seen = body.first(written, whole=whole)
    if seen is not None:
        return seen
    if known:
        return str(values)
    return _unknown("the shape uses names that the scope around the accumulator does not see")


def _dtype(
    module: Facts, pops: Sequence[Use], body: _Body, *, whole: bool
) -> ast.expr | str | Reason:
    written = [use.dtype for use in pops if use.dtype is not None]
    values = {module.constants.fold(expr) for expr in written}
    if len(values) > 1 or not values:
        return _unknown("the dtype is not written out")
    value = values.pop()
    if not isinstance(value, DType) and len({ast.dump(expr) for expr in written}) > 1:
        return _unknown("what is popped has several dtypes as far as pallas-fix can see")
    seen = body.first(written, whole=whole)
    if seen is not None:
        return seen
    if isinstance(value, DType):
        return f"jnp.{value.name}"
    return _unknown("the dtype uses names that the scope around the accumulator does not see")


def _unknown(why: str) -> Reason:
    return Reason(
        "shape-not-visible",
        f"the accumulator cannot be allocated where it begins: {why}",
        "pass the shape to the kernel (functools.partial), or define it at module level",
    )


class _Body:
    """The body of a function, of which the part that uses accumulators moves into a scope."""

    def __init__(self, module: Facts, function: Function, nodes: Sequence[ast.expr]) -> None:
        self._names = module.names
        self._function = function
        self._scope = module.names.scopes[function]
        self._kept: list[ast.stmt] = []
        self.start: ast.stmt | None = None
        """The first statement that must move; None where moving only some changes what names
        stand for."""
        if not isinstance(function, ast.Lambda):
            self._split(function.body, nodes)

    def _split(self, body: list[ast.stmt], nodes: Sequence[ast.expr]) -> None:
        numbers = [n for n, stmt in enumerate(body) if any(x in nodes for x in ast.walk(stmt))]
        if not numbers:
            return
        self._kept, moved = body[: numbers[0]], body[numbers[0] :]
        bound = {
            name
            for name, bindings in self._scope.bindings.items()
            if any(self._inside(b.node, moved) for b in bindings)
        }
        rebound = any(
            not self._inside(b.node, moved) for name in bound for b in self._scope.bindings[name]
        )
        read = {n.id for stmt in self._kept for n in ast.walk(stmt) if isinstance(n, ast.Name)}
        if not rebound and not bound & read:
            self.start = body[numbers[0]]

    def _inside(self, node: ast.AST, statements: Sequence[ast.stmt]) -> bool:
        while node is not self._function and node in self._names.parent:
            if node in statements:
                return True
            node = self._names.parent[node]
        return False

    def own(self, expr: ast.expr) -> set[str]:
        """The names in an expression that the function itself assigns."""
        found = set()
        for name in self._loaded(expr):
            here = self._names.lookup(name.id, self._scope)
            bindings = here[1] if here is not None and here[0] is self._scope else []
            if any(b.kind not in ("param", "star") for b in bindings):
                found.add(name.id)
        return found

    def first(self, written: Sequence[ast.expr], *, whole: bool) -> ast.expr | None:
        """The first of some expressions that means the same where the scope begins."""
        fitting = [expr for expr in written if self._means_the_same(expr)]
        for expr in fitting:
            if whole and not self.own(expr):
                return expr
        for expr in fitting:
            if self.start is not None and all(map(self._before, self.own(expr))):
                return expr
        return None

    def _means_the_same(self, expr: ast.expr) -> bool:
        for name in self._loaded(expr):
            there = self._names.lookup(name.id, self._names.scope(name))
            here = self._names.lookup(name.id, self._scope)
            if (there and there[0]) is not (here and here[0]):
                return False
        return True

    def _before(self, name: str) -> bool:
        """True for a name that is assigned once, before the code that moves."""
        bindings = self._scope.bindings[name]
        return len(bindings) == 1 and self._names.statement(bindings[0].node) in self._kept

    @staticmethod
    def _loaded(expr: ast.expr) -> Iterator[ast.Name]:
        return (node for node in ast.walk(expr) if isinstance(node, ast.Name))
