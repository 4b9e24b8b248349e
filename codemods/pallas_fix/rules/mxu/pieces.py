"""An accumulator of which fixed rows are used: one accumulator for each stretch of rows.

Accumulators take no index (`Transforms not supported for matmul_acc_lhs`), and the whole of
several can only be read one after the other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pallas_fix.edits import AddImport, Code, Edit, InsertAfter, RemoveStatement, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.indexing import is_whole, is_zero
from pallas_fix.facts.values import Event, Loaded, Ref, Trace, View
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import ACC_DTYPES, Writer
from pallas_fix.rules.mxu.index import mxu_index
from pallas_fix.rules.mxu.liveness import Action, lifetime
from pallas_fix.rules.mxu.scoping import unique

Rows = tuple[int, int]
"""The first row, and how many."""


@dataclass(slots=True)
class _Uses:
    """What is done with each stretch of rows (`parts`), and with the whole (`whole`)."""

    parts: dict[Rows, list[Event]] = field(default_factory=dict)
    whole: list[Event] = field(default_factory=list)


def pieces(module: Facts, trace: Trace, ref: Ref) -> list[Edit] | None:
    """Make a list of accumulators of one that is used by rows, or None where that is not safe."""
    allocation, slot = ref.allocation, ref.slot
    if ref.kind != "scoped" or allocation is None or slot is None:
        return None
    shape = module.constants.shape(allocation.shape)
    wide = module.constants.dtype(allocation.dtype) in ACC_DTYPES
    inside = not module.names.at_import(allocation.node)
    if shape is None or len(shape) != 2 or not wide or not inside:
        return None
    if slot.element is not allocation.node or slot.shared:
        return None
    uses = _uses(module, trace, ref)
    index = mxu_index(module, trace, ref)
    if uses is None or isinstance(index, Reason) or not _tiles(list(uses.parts), shape[0]):
        return None
    dropped = _dropped(module, trace, ref, uses)
    if dropped is None:
        return None
    order = sorted(uses.parts)
    edits: list[Edit] = [RemoveStatement(module.span(node)) for node in dropped]
    for number, rows in enumerate(order):
        for event in uses.parts[rows]:
            edits.extend(_part(module, event, number))
    for event in uses.whole:
        if event.kind != "store":
            read = _read(module, event, order)
            if read is None:
                return None
            edits.extend(read)
    made = _allocated(module, ref, index, order)
    return unique([*edits, *made]) if made is not None else None


def _uses(module: Facts, trace: Trace, ref: Ref) -> _Uses | None:
    found = _Uses()
    stored = _stored(module, trace, ref)
    for event in trace.uses(ref):
        if event.kind == "meta" and module.names.statement(event.node) in stored:
            continue
        rows = _rows_of(module, event)
        whole = event.kind in ("store", "load", "pop") and rows is None and _is_whole(event)
        if whole:
            if event.node not in {one.node for one in found.whole}:
                found.whole.append(event)
        elif rows is None or event.kind not in ("acc", "pop", "load"):
            return None
        else:
            found.parts.setdefault(rows, []).append(event)
    return found if len(found.parts) > 1 else None


def _stored(module: Facts, trace: Trace, ref: Ref) -> set[ast.stmt]:
    """The statements that zero the ref: `acc[...] = jnp.zeros_like(acc)` asks for its shape."""
    events = (e for e in trace.uses(ref) if e.kind == "store")
    zeroed = {e.node for e in events if is_zero(e.value, module.names)}
    return {module.names.statement(node) for node in zeroed}


def _is_whole(event: Event) -> bool:
    plain = isinstance(event.how, Ref) or (isinstance(event.how, View) and event.how.whole)
    return plain and event.whole


def _rows_of(module: Facts, event: Event) -> Rows | None:
    """The rows that an event reaches, where they are written as numbers."""
    how = event.how
    if event.kind == "load" and isinstance(how, Ref) and isinstance(event.node, ast.Subscript):
        return _rows(module, event.node.slice)
    node = how.node if isinstance(how, View | Loaded) else None
    if event.kind in ("acc", "pop") and isinstance(node, ast.Subscript):
        direct = isinstance(node.value, ast.Attribute) and node.value.attr == "at"
        return _rows(module, node.slice) if direct else None
    return None


def _rows(module: Facts, index: ast.expr) -> Rows | None:
    fold = module.constants.fold
    if isinstance(index, ast.Tuple) and index.elts:
        first, *rest = index.elts
        return _rows(module, first) if all(is_whole(e, module.names) for e in rest) else None
    match index:
        case ast.Slice(lower=lower, upper=ast.expr() as upper, step=None):
            start = fold(lower) if lower is not None else 0
            end = fold(upper)
            if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
                return start, end - start
        case ast.Call(args=[first, second], keywords=[]):
            if module.names.qualified(index.func) in ("pl.ds", "pl.dslice"):
                start, size = fold(first), fold(second)
                if isinstance(start, int) and isinstance(size, int) and start >= 0 and size > 0:
                    return start, size
    return None


def _tiles(parts: list[Rows], rows: int | None) -> bool:
    """True where the parts follow each other without a gap, in numbers that accumulators take."""
    end = 0
    for start, size in sorted(parts):
        if start != end or size % 8:
            return False
        end = start + size
    return end == rows


def _dropped(module: Facts, trace: Trace, ref: Ref, uses: _Uses) -> set[ast.AST] | None:
    """The zero stores that go, if each part is an accumulator that is read once at its end."""
    dropped: set[ast.AST] = set()
    for events in uses.parts.values():
        life = lifetime(module, trace, ref, [*events, *uses.whole])
        allowed = {Action.KEEP, Action.POP, Action.DROP}
        if life.obstacle or not set(life.actions.values()) <= allowed:
            return None
        dropped |= {node for node, action in life.actions.items() if action is Action.DROP}
    simple = all(module.names.statement(node) is node for node in dropped)
    return dropped if simple else None


def _part(module: Facts, event: Event, number: int) -> list[Edit]:
    """`acc.at[rows]` becomes `acc[number]`, and `acc[rows]` a pop of it."""
    node = event.how.node if isinstance(event.how, View | Loaded) else event.node
    base = node.value if isinstance(node, ast.Subscript) else node
    base = base.value if isinstance(base, ast.Attribute) else base
    writer = Writer(module, node)
    text = f"{writer.hole(base)}[{number}]"
    if event.kind == "load":
        text = f"{writer.name('pltpu.matmul_pop')}({text})"
    return [Replace(module.span(node), writer.code(text)), *writer.imports]


def _read(module: Facts, event: Event, order: list[Rows]) -> list[Edit] | None:
    """`out[...] = pop(acc)` becomes one such statement for each part."""
    statement = module.names.statement(event.node)
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=out), slice=index)], value=value):
            if value is not event.node or not is_whole(index, module.names):
                return None
        case _:
            return None
    if isinstance(event.node, ast.Call) and event.node.args:
        base: ast.expr = event.node.args[0]
    elif isinstance(event.node, ast.Subscript):
        base = event.node.value
    else:
        return None
    if not isinstance(base, ast.Name):
        return None
    writer = Writer(module, event.node)
    pop, ds = writer.name("pltpu.matmul_pop"), writer.name("pl.ds")
    lines = [
        f"{out}[{ds}({start}, {size})] = {pop}({base.id}[{number}])"
        for number, (start, size) in enumerate(order)
    ]
    start, size = order[0]
    return [
        Replace(module.span(index), Code(f"{ds}({start}, {size})")),
        Replace(module.span(event.node), Code(f"{pop}({base.id}[0])")),
        InsertAfter(module.span(statement), Code("\n".join(lines[1:]))),
        *writer.imports,
    ]


def _allocated(module: Facts, ref: Ref, index: int, order: list[Rows]) -> list[Edit] | None:
    allocation = ref.allocation
    if allocation is None or allocation.dtype is None:
        return None
    writer = Writer(module, allocation.node)
    shape = module.constants.origin(allocation.shape)
    columns = writer.moved(shape.elts[1]) if isinstance(shape, ast.Tuple | ast.List) else "256"
    dtype = writer.moved(allocation.dtype)
    if columns is None or dtype is None:
        return None
    space = f"{writer.name('pltpu.ACC')}({index})"
    texts = [f"{space}(({size}, {columns}), {dtype})" for _, size in order]
    same = len(set(texts)) == 1
    text = f"[{texts[0]}] * {len(texts)}" if same else f"[{', '.join(texts)}]"
    imports: list[AddImport] = writer.imports
    return [Replace(module.span(allocation.node), writer.code(text)), *imports]
