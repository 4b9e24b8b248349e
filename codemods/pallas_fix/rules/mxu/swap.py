"""Accumulators allocated in place: in `run_scoped`, `with_scoped` and `jax.empty_ref`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from pallas_fix.edits import (
    Code,
    Edit,
    RemoveArgument,
    RemoveDecorator,
    RemoveParameter,
    Replace,
)
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer, narrow
from pallas_fix.rules.mxu.scoping import Placed, scope_edit, unique, unknown_allocation, unscopable


def swap(module: Facts, placed: Sequence[Placed]) -> list[Edit] | Reason:
    """Allocate in place: the scope allows accumulators (`run_scoped`, `jax.empty_ref`)."""
    edits: list[Edit] = []
    by_node: dict[ast.AST, list[Placed]] = {}
    for item in placed:
        if item.ref.allocation is None or item.ref.slot is None:
            return unknown_allocation()
        by_node.setdefault(item.ref.allocation.node, []).append(item)
    for items in by_node.values():
        several = len({item.index for item in items}) > 1
        made = _swap_repeated(module, items) if several else _swap_one(module, items)
        if isinstance(made, Reason):
            return made
        edits.extend(made)
    return unique(edits)


def _swap_one(module: Facts, items: Sequence[Placed]) -> list[Edit] | Reason:
    """Refs of one allocation and one MXU: the memory space is swapped where it is written."""
    edits: list[Edit] = []
    for item in items:
        allocation, slot = item.ref.allocation, item.ref.slot
        if allocation is None or slot is None:
            return unknown_allocation()
        top_level = module.names.at_import(allocation.node)
        named = slot.element is not allocation.node
        others = _others(module, items)
        if others and not named:
            return Reason(
                "shared-allocation",
                "the same expression also allocates a ref that is no accumulator",
                "allocate the accumulator on its own",
            )
        if top_level and not named:
            inner = _into_body(module, item)
            if isinstance(inner, Reason):
                return inner
            edits.extend(inner)
            continue
        if top_level or others or isinstance(item.index, tuple):
            place = slot.element if top_level or others else allocation.node
            writer = Writer(module, place)
            text = writer.accumulator(allocation, item.index)
            if isinstance(text, Reason):
                return text
            edits.append(Replace(module.span(place), writer.code(text)))
        else:
            writer = Writer(module, allocation.node)
            space = Code(f"{writer.name('pltpu.ACC')}({item.index})")
            edits.append(Replace(module.span(allocation.space_node), space))
            if narrow(module, allocation) is not None and allocation.dtype is not None:
                dtype = Code(writer.name("jnp.float32"))
                edits.append(Replace(module.span(allocation.dtype), dtype))
        edits.extend(writer.imports)
    return edits


def _others(module: Facts, items: Sequence[Placed]) -> bool:
    """True where the allocation of these refs serves others, which must stay what they are."""
    refs = [item.ref for item in items]
    node = refs[0].allocation.node if refs[0].allocation is not None else None
    return any(
        ref.allocation is not None and ref.allocation.node is node and ref not in refs
        for trace in module.traces
        for ref in trace.refs
    )


def _swap_repeated(module: Facts, items: Sequence[Placed]) -> list[Edit] | Reason:
    """`[space(...)] * n` whose refs work on several MXUs: a list with one entry each."""
    refused = Reason(
        "two-mxus",
        "one allocation serves two MXUs",
        "allocate one pltpu.ACC(mxu_index) for each MXU, in a list",
    )
    first = items[0].ref
    if first.slot is None or first.allocation is None:
        return refused
    container = first.slot.container
    repeated = module.names.parent[container]
    single = isinstance(container, ast.List) and len(container.elts) == 1
    if isinstance(container, ast.ListComp):
        repeated = container
    elif not single:
        return refused
    if not isinstance(repeated, ast.BinOp | ast.ListComp) or not first.slot.shared:
        return refused
    slots = module.allocations.slots(repeated)
    if slots is None or len(slots) != len({item.ref for item in items}):
        return refused
    writer = Writer(module, repeated)
    text = writer.accumulator(first.allocation, tuple(_single(item) for item in items))
    if isinstance(text, Reason):
        return text
    code = writer.code(text)
    return [Replace(module.span(repeated), code), *writer.imports]


def _into_body(module: Facts, item: Placed) -> list[Edit] | Reason:
    """Move a scope of `pl.with_scoped` at module level into the body of its function.

    `pltpu.ACC(...)(...)` asks for a device, so that it fails while the module is imported.
    """
    refused = Reason(
        "module-level",
        "pltpu.ACC(...)(...) asks for a device, so it cannot stand at module level",
        "allocate the accumulator inside the kernel with pl.run_scoped",
    )
    allocation, function = item.ref.allocation, item.trace.function
    if allocation is None or not isinstance(function, ast.FunctionDef):
        return refused
    scoping = module.names.parent[allocation.node]
    key = None
    if isinstance(scoping, ast.keyword):
        key, scoping = scoping.arg, module.names.parent[scoping]
    if not isinstance(scoping, ast.Call) or key is not None:
        return refused
    if module.names.qualified(scoping.func) != "pl.with_scoped":
        return refused
    if item.ref.name not in item.trace.parameters:
        return refused
    if len(scoping.args) + len(scoping.keywords) > 1:
        edits: list[Edit] = [RemoveArgument(module.span(scoping), module.span(allocation.node))]
    elif scoping in function.decorator_list:
        edits = [RemoveDecorator(module.span(function), module.span(scoping))]
    else:
        call = module.names.parent[scoping]
        if not isinstance(call, ast.Call) or len(call.args) != 1:
            return refused
        kernel = Code("$kernel", {"kernel": module.span(call.args[0])})
        edits = [Replace(module.span(call), kernel)]
    reason = unscopable(module, function, [item.ref.name])
    if reason is not None:
        return reason
    writer = Writer(module, function.body[0])
    types = writer.accumulator(allocation, item.index)
    if isinstance(types, Reason):
        return types
    edits.append(RemoveParameter(module.span(function), item.ref.name))
    edits.append(scope_edit(module, function, [item.ref.name], types, writer))
    return [*edits, *writer.imports]


def _single(item: Placed) -> int:
    return item.index if isinstance(item.index, int) else item.index[0]
