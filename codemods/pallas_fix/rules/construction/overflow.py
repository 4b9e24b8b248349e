"""More accumulators alive at once than an MXU has room for.

Each MXU of a TPU7x has 128 entries of 8 rows (`num_accumulators` in
jax/_src/pallas/mosaic/tpu_info.py). `pl.run_scoped` frees what it allocated when its body ends;
what `jax.empty_ref` allocates in a kernel stays (jax/_src/pallas/mosaic/lowering.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation
from pallas_fix.facts.values import Event, Ref, Region, Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.trouble import Repair, Trouble
from pallas_fix.rules.construction.written import COLUMNS, SUBLANES
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.mxu.index import ENTRIES, MXUS


@dataclass(frozen=True, slots=True)
class _Taken:
    """What one accumulator takes of an MXU."""

    ref: Ref
    allocation: Allocation
    mxu: int
    entries: int


def overflow(module: Facts) -> Iterator[Trouble]:
    """Accumulators of known size for which there is no room, one of each kernel."""
    reported: set[ast.AST] = set()
    for trace in module.traces:
        for alive in _alive_together(module, trace):
            full = _full(alive)
            if full is not None and full.allocation.node not in reported:
                reported.add(full.allocation.node)
                yield _trouble(module, trace, full, alive)


def _alive_together(module: Facts, trace: Trace) -> Iterator[list[_Taken]]:
    """Sets of accumulators that are certainly alive at the same time."""
    lasting: list[_Taken] = []
    scopes: dict[ast.AST, list[_Taken]] = {}
    seen: list[Ref] = []
    for ref in trace.refs:
        taken = _taken(module, ref)
        if taken is None or ref in seen:
            continue
        seen.append(ref)
        if ref.kind == "scoped" and ref.slot is not None:
            scope = _scope(module, taken.allocation.node)
            if scope is not None:
                own = scopes.setdefault(scope, [])
                # A scope that is entered again starts anew.
                if any(other.ref.slot is ref.slot for other in own if not _is_shared(ref)):
                    own.clear()
                own.append(taken)
                outer = [
                    t for node, ts in scopes.items() if _holds(module, node, scope) for t in ts
                ]
                yield [*lasting, *outer, *own]
        elif ref.kind == "empty" and _lasts(module, trace, ref):
            lasting.append(taken)
            yield list(lasting)


def _is_shared(ref: Ref) -> bool:
    return ref.slot is not None and ref.slot.shared


def _taken(module: Facts, ref: Ref) -> _Taken | None:
    allocation = ref.allocation
    if allocation is None or allocation.space != "pltpu.ACC":
        return None
    dims = module.constants.shape(allocation.shape)
    index = module.constants.fold(allocation.index)
    if dims is None or len(dims) < 2 or dims[-1] != COLUMNS or type(index) is not int:
        return None
    rows = 1
    for dim in dims[:-1]:
        rows *= dim or 0
    return _Taken(ref, allocation, index, rows // SUBLANES) if rows else None


def _scope(module: Facts, node: ast.AST) -> ast.Call | None:
    """The `run_scoped` or `with_scoped` call that holds an allocation."""
    parent = module.names.parent.get(node)
    while parent is not None and not isinstance(parent, ast.stmt):
        if isinstance(parent, ast.Call):
            name = module.names.qualified(parent.func) or ""
            if name.rpartition(".")[2] in ("run_scoped", "with_scoped"):
                return parent
        parent = module.names.parent.get(parent)
    return None


def _holds(module: Facts, outer: ast.AST, inner: ast.AST) -> bool:
    """True if the function that `outer` runs contains the call `inner`."""
    if outer is inner or not isinstance(outer, ast.Call) or not outer.args:
        return False
    body = module.names.definition(outer.args[0])
    return body is not None and any(node is inner for node in ast.walk(body))


def _lasts(module: Facts, trace: Trace, ref: Ref) -> bool:
    """True for a `jax.empty_ref` in the straight line of a kernel, so that nothing frees it."""
    path = _path(trace.root, ref)
    if path is None or any(region.kind not in ("body", "unrolled") for region in path):
        return False
    for region in path:
        called = module.names.qualified(region.at.func) if isinstance(region.at, ast.Call) else None
        if called is not None and called.endswith(("run_scoped", "with_scoped")):
            return False
    return True


def _path(region: Region, ref: Ref) -> list[Region] | None:
    """The regions around the first use of a ref, from the outside in."""
    for item in region.items:
        if isinstance(item, Event):
            if item.ref is ref:
                return [region]
        else:
            inner = _path(item, ref)
            if inner is not None:
                return [region, *inner]
    return None


def _full(alive: Iterable[_Taken]) -> _Taken | None:
    """The first accumulator for which its MXU has no room left."""
    used = dict.fromkeys(range(MXUS), 0)
    for taken in alive:
        if taken.mxu in used:
            used[taken.mxu] += taken.entries
            if used[taken.mxu] > ENTRIES:
                return taken
    return None


def _trouble(module: Facts, trace: Trace, full: _Taken, alive: list[_Taken]) -> Trouble:
    needed = sum(taken.entries for taken in alive if taken.mxu == full.mxu)
    message = (
        f"the accumulators of MXU {full.mxu} that are alive here need {needed} entries of "
        f"{SUBLANES} rows, and a TPU7x has {ENTRIES}"
    )
    repair = _unused(module, trace, full, alive) or _scoped(module, alive)
    reason = Reason(
        "overflow",
        f"what has to go is open: {needed} entries are needed, and there are {ENTRIES}",
        "use smaller tiles or the other MXU, or allocate in one pl.run_scoped after the other: "
        "it frees its accumulators, and jax.empty_ref does not",
    )
    return Trouble(full.allocation.node, message, repair or reason)


def _unused(module: Facts, trace: Trace, full: _Taken, alive: list[_Taken]) -> Repair | None:
    """An accumulator that nothing uses may as well be on the other MXU."""
    index = full.allocation.index
    if index is None or trace.uses(full.ref):
        return None
    others = sum(t.entries for t in alive if t.mxu == 1 - full.mxu)
    within = module.span(full.allocation.node).contains(module.span(index))
    if not within or others + full.entries > ENTRIES or _is_shared(full.ref):
        return None
    return Repair((Replace(module.span(index), Code(str(1 - full.mxu))),))


def _scoped(module: Facts, alive: list[_Taken]) -> Repair | None:
    """`f(..., jax.empty_ref(...))` after another: each in a scope that frees it."""
    edits: list[Edit] = []
    done: set[ast.AST] = set()
    for taken in alive:
        node = taken.allocation.node
        call = module.names.parent[node]
        statement = module.names.parent.get(call)
        plain = isinstance(call, ast.Call) and node in call.args
        if taken.ref.kind != "empty" or not plain or not isinstance(statement, ast.Expr):
            return None
        if node in done:
            return None
        done.add(node)
        writer = Writer(module, node)
        types = _type(writer, taken)
        if types is None:
            return None
        name = "acc"
        if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(call)):
            name = module.names.fresh(name)
        run, body = writer.name("pl.run_scoped"), writer.hole(call)
        code = writer.code(f"{run}(lambda {name}: {body}, {types})")
        edits.extend((Replace(module.span(call), code), Replace(module.span(node), Code(name))))
        edits.extend(writer.imports)
    written = all(taken.allocation.dtype is not None for taken in alive)
    return Repair(tuple(edits), certain=written)


def _type(writer: Writer, taken: _Taken) -> str | None:
    """The type for `pl.run_scoped`; float32 where the file leaves the dtype to a function."""
    shape, dtype = taken.allocation.shape, taken.allocation.dtype
    moved = writer.moved(shape) if shape is not None else None
    named = writer.moved(dtype) if dtype is not None else writer.name("jnp.float32")
    if moved is None or named is None:
        return None
    return f"{writer.name('pltpu.ACC')}({taken.mxu})({moved}, {named})"
