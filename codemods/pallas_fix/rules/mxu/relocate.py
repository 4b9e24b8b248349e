"""Accumulators that leave a scratch list, for a scope around the kernel or in its body."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import (
    AddParameter,
    Code,
    Edit,
    RemoveArgument,
    RemoveElement,
    RemoveParameter,
    Replace,
    SetKeyword,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Slot, argument
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Mxu, Writer
from pallas_fix.rules.mxu.scoping import Placed, scope_edit, unique, unknown_allocation, unscopable


@dataclass(frozen=True, slots=True)
class Move:
    """The entries that leave the scratch list of one launch, by position (`tops`)."""

    launch: Launch
    items: list[Placed]
    tops: dict[int, Slot]


def relocate(module: Facts, placed: Sequence[Placed]) -> list[Edit] | Reason:
    """Take scratch entries out of their launches, and give the kernels accumulators instead."""
    edits: list[Edit] = []
    kernels: dict[Function, list[Move]] = {}
    for launch, items in _by_launch(placed):
        tops = _top_slots(launch, items)
        if isinstance(tops, Reason):
            return tops
        move = Move(launch, items, tops)
        kernels.setdefault(items[0].trace.function, []).append(move)
    moves = [move for found in kernels.values() for move in found]
    for move in moves:
        removed = _remove(module, move, moves)
        if isinstance(removed, Reason):
            return removed
        edits.extend(removed)
    for found in kernels.values():
        made = _scoped(module, found)
        if isinstance(made, Reason):
            return made
        edits.extend(made)
    return unique(edits)


def _scoped(module: Facts, moves: list[Move]) -> list[Edit] | Reason:
    """A scope around the kernel in each of its launches, or one in its body for all of them."""
    around = [_around(module, move, moves) for move in moves]
    edits = [edit for one in around if isinstance(one, list) for edit in one]
    if all(isinstance(one, list) for one in around):
        return edits
    bodies = [_body(module, move, moves) for move in moves]
    refused = next((body for body in bodies if isinstance(body, Reason)), None)
    if refused is not None:
        return refused
    if any(_signature(module, move) != _signature(module, moves[0]) for move in moves):
        return Reason(
            "several-shapes",
            "launches with accumulators of several shapes share the kernel",
            "pass the accumulator's shape to the kernel (functools.partial), and wrap its body in "
            "pl.run_scoped with a pltpu.ACC of that shape",
        )
    return bodies[0]


def _signature(module: Facts, move: Move) -> list[object]:
    """What the accumulators of a launch are, to be compared."""
    found: list[object] = []
    for item in move.items:
        allocation = item.ref.allocation
        shape = module.constants.shape(allocation.shape) if allocation is not None else None
        known = shape is not None and None not in shape
        node = allocation.node if allocation is not None else None
        found.append((item.index, item.ref.name, shape if known else node))
    return [sorted(move.tops), *found]


def _by_launch(placed: Sequence[Placed]) -> Iterator[tuple[Launch, list[Placed]]]:
    found: dict[int, tuple[Launch, list[Placed]]] = {}
    for item in placed:
        if item.trace.launch is not None:
            found.setdefault(id(item.trace.launch), (item.trace.launch, []))[1].append(item)
    yield from found.values()


def _leaves(slot: Slot) -> Iterator[Slot]:
    if slot.children is None:
        yield slot
    for child in slot.children or ():
        yield from _leaves(child)


def _top_slots(launch: Launch, items: list[Placed]) -> dict[int, Slot] | Reason:
    """The entries of the scratch list that go, by position; each goes as a whole."""
    moved = [item.ref.slot for item in items]
    found: dict[int, Slot] = {}
    for position, slot in enumerate(launch.scratch or ()):
        leaves = list(_leaves(slot))
        count = sum(leaf in moved for leaf in leaves)
        if count == len(leaves):
            found[position] = slot
        elif count:
            return Reason(
                "mixed-entry",
                "a nested scratch entry holds accumulators and other refs",
                "give the accumulators an entry of their own",
            )
    return found


def _remove(module: Facts, move: Move, moves: list[Move]) -> list[Edit] | Reason:
    """Edits that take entries out of the scratch list; an empty list goes away."""
    launch, tops = move.launch, move.tops
    node = launch.scratch_node
    if node is None:
        return unknown_allocation()
    same = [one.launch for one in moves if one.tops.keys() == tops.keys()]
    whole = len(tops) == len(launch.scratch or ())
    for other in module.launches:
        if whole:
            shared = other.scratch_owner is launch.scratch_owner
        else:
            containers = {id(slot.container) for slot in tops.values()}
            shared = any(id(slot.container) in containers for slot in other.scratch or ())
        if shared and other not in same:
            return Reason(
                "shared-scratch-list",
                "launches of other kernels share the scratch list",
                "give each launch its own list",
            )
    if whole:
        edits: list[Edit] = [RemoveArgument(module.span(launch.scratch_owner), module.span(node))]
        return edits
    edits = []
    for slot in tops.values():
        if slot.shared:
            return Reason(
                "repeated-entry",
                "the scratch list repeats one entry (`[...] * n`) among others",
                "write the entries out one by one",
            )
        if isinstance(slot.container, ast.Call):
            edits.append(RemoveArgument(module.span(slot.container), module.span(slot.element)))
        else:
            edits.append(RemoveElement(module.span(slot.container), module.span(slot.element)))
    return edits


def _around(module: Facts, move: Move, moves: list[Move]) -> list[Edit] | Reason:
    """`pl.with_scoped(...)(kernel)` around the kernel, where its parameters allow that."""
    launch, items, tops = move.launch, move.items, move.tops
    refused = Reason("no-wrapper", "pl.with_scoped does not fit here", "")
    kernel, trace = launch.kernel, items[0].trace
    if not isinstance(kernel, ast.expr) or module.names.at_import(kernel):
        return refused
    keyed = all(slot.key for slot in tops.values())
    count = len(launch.scratch or ())
    last = sorted(tops) == list(range(count - len(tops), count))
    edits: list[Edit] = []
    if not keyed and not last:
        moved = _parameters(trace, launch, tops)
        if moved is None or not _only_launched(module, trace, [one.launch for one in moves]):
            return refused
        if any(_parameters(trace, one.launch, one.tops) != moved for one in moves):
            return refused
        for name in moved:
            edits.append(RemoveParameter(module.span(trace.function), name))
            edits.append(AddParameter(module.span(trace.function), name))
    writer = Writer(module, kernel)
    text = _types(writer, tops, items)
    if isinstance(text, Reason):
        return refused
    wrapped = f"{writer.name('pl.with_scoped')}({text})({writer.hole(kernel)})"
    edits.append(Replace(module.span(kernel), writer.code(wrapped)))
    edits.extend(writer.imports)
    # The wrapper is called `inner`; the kernel's own name stays in profiles.
    named = argument(launch.call, None, "name") is not None
    if not named and any(keyword.arg is None for keyword in launch.call.keywords):
        return refused
    if not named and isinstance(trace.function, ast.FunctionDef):
        shown = Code(f'"{trace.function.name}"')
        edits.append(SetKeyword(module.span(launch.call), "name", shown))
    return edits


def _parameters(trace: Trace, launch: Launch, tops: dict[int, Slot]) -> list[str] | None:
    """The parameters bound to the entries that go, where they may move to the end."""
    function = trace.function
    arguments = function.args
    plain = isinstance(function, ast.FunctionDef) and not arguments.vararg
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if not plain or arguments.defaults or list(trace.parameters) != named:
        return None
    offset = len(trace.parameters) - len(launch.scratch or ())
    return [trace.parameters[offset + position] for position in tops] if offset >= 0 else None


def _only_launched(module: Facts, trace: Trace, launches: Sequence[Launch]) -> bool:
    """True if nothing in the file uses the kernel function but these launches."""
    function = trace.function
    if not isinstance(function, ast.FunctionDef) or any(x.kernel is function for x in launches):
        return True
    kernels = [launch.kernel for launch in launches]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            if module.names.definition(node) is not function:
                continue
            inside = (k for k in kernels if isinstance(k, ast.expr))
            if not any(node in ast.walk(k) for k in inside):
                return False
    return True


def _types(writer: Writer, tops: dict[int, Slot], items: list[Placed]) -> str | Reason:
    """The types that `run_scoped` and `with_scoped` take for the entries."""
    index = {id(item.ref.slot): item.index for item in items}
    texts = []
    for slot in tops.values():
        text = _type(writer, slot, index)
        if isinstance(text, Reason):
            return text
        texts.append(f"{slot.key}={text}" if slot.key else text)
    return ", ".join(texts)


def _type(writer: Writer, slot: Slot, index: dict[int, Mxu]) -> str | Reason:
    if slot.children is not None:
        inner = []
        for child in slot.children:
            text = _type(writer, child, index)
            if isinstance(text, Reason):
                return text
            inner.append(f"{child.key!r}: {text}" if child.key else text)
        keyed = any(child.key for child in slot.children)
        return f"{{{', '.join(inner)}}}" if keyed else f"[{', '.join(inner)}]"
    if slot.allocation is None:
        return unknown_allocation()
    return writer.accumulator(slot.allocation, index[id(slot)])


def _body(module: Facts, move: Move, moves: list[Move]) -> list[Edit] | Reason:
    """`pl.run_scoped` in the body of the kernel, whose parameter goes away."""
    launch, items, tops = move.launch, move.items, move.tops
    trace = items[0].trace
    function = trace.function
    launches = [one.launch for one in moves]
    keyed = [slot.key for slot in tops.values() if slot.key]
    names = list(map(str, keyed)) if keyed else _bound(trace, launch, tops)
    if names is None or not _only_launched(module, trace, launches):
        return Reason(
            "kernel-not-plain",
            "the kernel takes its refs in a way that pallas-fix cannot change safely",
            "wrap the kernel's body in pl.run_scoped with a pltpu.ACC by hand",
        )
    reason = unscopable(module, function, names)
    if reason is not None:
        return reason
    edits: list[Edit] = [RemoveParameter(module.span(function), name) for name in names]
    at = function.body if isinstance(function, ast.Lambda) else function.body[0]
    writer = Writer(module, at)
    text = _types(writer, tops, items)
    if isinstance(text, Reason):
        return text
    edits.append(scope_edit(module, function, names, text, writer))
    edits.extend(writer.imports)
    return edits


def _bound(trace: Trace, launch: Launch, tops: dict[int, Slot]) -> list[str] | None:
    if trace.function.args.vararg:
        return None
    offset = len(trace.parameters) - len(launch.scratch or ())
    return [trace.parameters[offset + position] for position in tops] if offset >= 0 else None
