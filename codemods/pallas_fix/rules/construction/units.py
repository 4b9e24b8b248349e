"""Accumulators with leading dimensions of one: `(1, rows, 256)` is `(rows, 256)`."""

from __future__ import annotations

import ast

from pallas_fix.edits import Code, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.values import Event, Ref, Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.dtype import stored_in
from pallas_fix.rules.construction.extent import ref_extent
from pallas_fix.rules.construction.trouble import Made, Repair, shared_code, view_node
from pallas_fix.rules.construction.written import COLUMNS, last_dimensions, write_shape
from pallas_fix.rules.mxu.acc_code import Writer

_MXU = ("acc", "pop")


def without_units(module: Facts, made: Made, units: int) -> Repair | Reason:
    """Drop leading dimensions of one, and the indices into them."""
    writer = Writer(module, made.allocation.node)
    texts = last_dimensions(module, writer, made.allocation, units)
    if isinstance(texts, Reason):
        return texts
    edits = write_shape(module, made.allocation, f"({', '.join(texts)})", writer)
    if isinstance(edits, Reason):
        return edits
    done: set[ast.AST] = set()
    edited: set[ast.AST] = set()
    certain = True
    for trace, event in made.events("acc", "pop", "load", "store", "update", "escape"):
        if event.kind not in _MXU:
            return _not_followed(module, event)
        if event.node in done:
            continue
        done.add(event.node)
        if isinstance(event.how, Ref):
            popped = _popped(module, trace, event, units) if event.kind == "pop" else None
            if popped is not None:
                certain = certain and popped.certain
                edits.extend(popped.edits)
                edited |= {event.node} if popped.edits else set()
            continue
        view = view_node(event)
        if not isinstance(view, ast.Subscript) or not _is_first(module, view, units):
            return _not_followed(module, event)
        base = view.value.value if isinstance(view.value, ast.Attribute) else view.value
        edits.append(Replace(module.span(view), Code("$r", {"r": module.span(base)})))
        edited.add(event.node)
    return shared_code(module, made, edited) or Repair(tuple(edits), certain)


def _popped(module: Facts, trace: Trace, event: Event, units: int) -> Repair:
    """What a whole pop becomes, whose value had leading dimensions of one."""
    node = event.node
    parent = module.names.parent[node]
    indexed = isinstance(parent, ast.Subscript) and parent.value is node
    if isinstance(parent, ast.Subscript) and indexed and _is_first(module, parent, units):
        return Repair((Replace(module.span(parent), Code("$v", {"v": module.span(node)})),))
    store = stored_in(module, trace, event)
    target = ref_extent(module, trace, store.ref) if store is not None and store.ref else None
    if store is None or (target is not None and len(target.dims) > 2):
        index = ", ".join(["None"] * units)
        code = Code(f"$v[{index}]", {"v": module.span(node)})
        return Repair((Replace(module.span(node), code),), certain=store is not None)
    return Repair((), certain=target is not None)


def _not_followed(module: Facts, event: Event) -> Reason:
    return Reason(
        "rank",
        f"line {module.span(event.node).line} uses the accumulator in a way that the dimensions "
        "of one are part of",
        f"allocate it as (rows, {COLUMNS}) and give the popped value its dimensions back",
    )


def _is_first(module: Facts, node: ast.Subscript, units: int) -> bool:
    """True for an index that takes the only element of leading dimensions of one."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return len(parts) == units and all(module.constants.fold(part) in (0, -1) for part in parts)
