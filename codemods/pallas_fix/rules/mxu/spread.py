"""One ref that a Python loop uses on one MXU after the other: an accumulator for each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.edits import Code, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.values import Event, Region
from pallas_fix.rules.mxu.index import MXUS, feeds
from pallas_fix.rules.mxu.liveness import Life


@dataclass(frozen=True, slots=True)
class Spread:
    """The MXUs of a ref, and the edits that index the list of its accumulators."""

    indices: tuple[int, ...]
    edits: list[Replace]


def spread(module: Facts, life: Life) -> Spread | None:
    """Split a ref over the MXUs of a loop, or None where its uses are not one pass each.

    Each pass of one loop over `range(n)` must accumulate on the MXU of its own number, and read
    what it accumulated before it ends.
    """
    loop = _loop(life)
    if loop is None or not isinstance(loop.target, ast.Name) or life.obstacle:
        return None
    feeding = feeds(module, life.trace)
    passes: dict[int, list[Event]] = {}
    for event in life.events:
        if event.kind != "meta":
            passes.setdefault(event.site[0], []).append(event)
    for number, events in passes.items():
        accs = [event for event in events if event.kind == "acc"]
        mxus = {push.mxu for event in accs for push in feeding.get(event, ())}
        if mxus != {number} or events[-1].kind not in ("pop", "load"):
            return None
    uses = list(_uses(module, life, loop))
    inside = all(module.within(loop, use) for use in uses)
    if sorted(passes) != list(range(len(passes))) or len(passes) > MXUS or not inside or not uses:
        return None
    index = loop.target.id
    edits: list[Replace] = [Replace(module.span(use), Code(f"{use.id}[{index}]")) for use in uses]
    return Spread(tuple(sorted(passes)), edits)


def _loop(life: Life) -> ast.For | None:
    """The one loop over `range(n)` in whose passes all uses of the ref lie."""
    found: set[ast.AST] = set()
    for event, outer in _outermost(life.trace.root, None):
        if event in life.events and event.kind != "meta":
            if outer is None:
                return None
            found.add(outer.node)
    node = found.pop() if len(found) == 1 else None
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Call):
        call = node.iter
        plain = isinstance(call.func, ast.Name) and call.func.id == "range"
        return node if plain and len(call.args) == 1 else None
    return None


def _outermost(region: Region, outer: Region | None) -> Iterator[tuple[Event, Region | None]]:
    for item in region.items:
        if isinstance(item, Event):
            yield item, outer
        else:
            unrolled = item if outer is None and item.kind == "unrolled" else outer
            yield from _outermost(item, unrolled)


def _uses(module: Facts, life: Life, loop: ast.For) -> Iterator[ast.Name]:
    """The places that name the ref in the function of the loop."""
    names = module.names
    function = next(names.enclosing(loop), None)
    if function is None:
        return
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == life.ref.name:
            found = names.lookup(node.id, names.scope(node))
            if found is not None and found[0].node is function and isinstance(node.ctx, ast.Load):
                yield node
