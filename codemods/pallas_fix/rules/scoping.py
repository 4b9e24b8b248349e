"""Where an accumulator is allocated: in place, around the kernel, or in a scope of its body.

`pltpu.ACC(i)(shape, dtype)` is refused in scratch lists (`Invalid memory space`), and asks for
a device, so that it may not be evaluated at module level (jax/_src/pallas/mosaic/core.py). Refs
of `pl.with_scoped` are bound after all others (jax/_src/pallas/helpers.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import (
    AddParameter,
    Code,
    Edit,
    MoveIntoScope,
    RemoveArgument,
    RemoveDecorator,
    RemoveElement,
    RemoveParameter,
    Replace,
    SetKeyword,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Slot, argument
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Ref, Trace
from pallas_fix.rules.acc_code import Writer, narrow
from pallas_fix.rules.base import Reason


@dataclass(frozen=True, slots=True)
class Placed:
    """A ref that becomes an accumulator of the MXU `index`."""

    trace: Trace
    ref: Ref
    index: int


def swap(module: Facts, placed: Sequence[Placed]) -> list[Edit] | Reason:
    """Allocate in place: the scope allows accumulators (`run_scoped`, `jax.empty_ref`)."""
    edits: list[Edit] = []
    done: dict[ast.AST, int] = {}
    for item in placed:
        allocation, slot = item.ref.allocation, item.ref.slot
        if allocation is None or slot is None:
            return _unknown()
        before = done.setdefault(allocation.node, item.index)
        if before != item.index:
            return Reason(
                "two-mxus",
                "one allocation serves two MXUs",
                "allocate one pltpu.ACC(mxu_index) for each MXU, in a list",
            )
        top_level = next(module.names.enclosing(allocation.node), None) is None
        named = slot.element is not allocation.node
        if top_level and not named:
            inner = _into_body(module, item)
            if isinstance(inner, Reason):
                return inner
            edits.extend(inner)
            continue
        place = slot.element if named and top_level else allocation.node
        writer = Writer(module, place)
        if place is slot.element and named:
            text = writer.accumulator(allocation, item.index)
            if isinstance(text, Reason):
                return text
            edits.append(Replace(module.span(place), writer.code(text)))
        else:
            space = Code(f"{writer.name('pltpu.ACC')}({item.index})")
            edits.append(Replace(module.span(allocation.space_node), space))
            if narrow(module, allocation) is not None and allocation.dtype is not None:
                dtype = Code(writer.name("jnp.float32"))
                edits.append(Replace(module.span(allocation.dtype), dtype))
        edits.extend(writer.imports)
    return _unique(edits)


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


def relocate(module: Facts, placed: Sequence[Placed]) -> list[Edit] | Reason:
    """Take scratch entries out of their launches, and give the kernels accumulators instead."""
    edits: list[Edit] = []
    scoped: set[Function] = set()
    for launch, items in _by_launch(placed):
        tops = _top_slots(launch, items)
        if isinstance(tops, Reason):
            return tops
        removed = _remove(module, launch, tops)
        if isinstance(removed, Reason):
            return removed
        edits.extend(removed)
        around = _around(module, launch, items, tops)
        if isinstance(around, list):
            edits.extend(around)
            continue
        if items[0].trace.function not in scoped:
            scoped.add(items[0].trace.function)
            body = _body(module, launch, items, tops, placed)
            if isinstance(body, Reason):
                return body
            edits.extend(body)
    return _unique(edits)


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


def _remove(module: Facts, launch: Launch, tops: dict[int, Slot]) -> list[Edit] | Reason:
    """Edits that take entries out of the scratch list; an empty list goes away."""
    node = launch.scratch_node
    if node is None:
        return _unknown()
    if len(tops) == len(launch.scratch or ()):
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
    users = [
        other
        for other in module.launches
        if any(s.container is t.container for s in other.scratch or () for t in tops.values())
    ]
    if len({other.call for other in users}) > 1:
        return Reason(
            "shared-scratch-list",
            "several launches share the scratch list",
            "give each launch its own list",
        )
    return edits


def _around(
    module: Facts, launch: Launch, items: list[Placed], tops: dict[int, Slot]
) -> list[Edit] | Reason:
    """`pl.with_scoped(...)(kernel)` around the kernel, where its parameters allow that."""
    refused = Reason("no-wrapper", "pl.with_scoped does not fit here", "")
    kernel, trace = launch.kernel, items[0].trace
    if not isinstance(kernel, ast.expr) or next(module.names.enclosing(kernel), None) is None:
        return refused
    keyed = all(slot.key for slot in tops.values())
    count = len(launch.scratch or ())
    last = sorted(tops) == list(range(count - len(tops), count))
    edits: list[Edit] = []
    if not keyed and not last:
        moved = _parameters(trace, launch, tops)
        if moved is None or not _only_launched(module, trace, [launch]):
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
    if not isinstance(function, ast.FunctionDef):
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


def _type(writer: Writer, slot: Slot, index: dict[int, int]) -> str | Reason:
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
        return _unknown()
    return writer.accumulator(slot.allocation, index[id(slot)])


def _body(
    module: Facts,
    launch: Launch,
    items: list[Placed],
    tops: dict[int, Slot],
    placed: Sequence[Placed],
) -> list[Edit] | Reason:
    """`pl.run_scoped` in the body of the kernel, whose parameter goes away."""
    trace = items[0].trace
    function = trace.function
    launches = [p.trace.launch for p in placed if p.trace.launch is not None]
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


def scope_edit(
    module: Facts, function: Function, names: Sequence[str], types: str, writer: Writer
) -> Edit:
    """The edit that runs the body of a function in a scope with accumulators."""
    run = writer.name("pl.run_scoped")
    if isinstance(function, ast.Lambda):
        body = writer.hole(function.body)
        text = f"{run}(lambda {', '.join(names)}: {body}, {types})"
        return Replace(module.span(function.body), writer.code(text))
    scope = module.names.fresh("scope")
    returns = "return " if _returns(function) else ""
    after = writer.code(f"{returns}{run}({scope}, {types})")
    return MoveIntoScope(module.span(function), scope, tuple(names), after)


def unscopable(module: Facts, function: Function, names: Sequence[str]) -> Reason | None:
    """Why the body of a function cannot move into an inner function, if it cannot."""
    scope = module.names.scopes[function]
    rebound = [
        name
        for name, bindings in scope.bindings.items()
        if name not in names
        and any(b.kind in ("param", "star") for b in bindings)
        and any(b.kind not in ("param", "star") for b in bindings)
    ]
    if rebound:
        return Reason(
            "rebinds-parameter",
            f"the kernel assigns to its parameter {rebound[0]!r}, so its body cannot move into "
            "an inner function",
            f"give the new value of {rebound[0]!r} a name of its own",
        )
    own = (n for n in ast.walk(function) if isinstance(n, ast.Yield | ast.YieldFrom | ast.Await))
    if next(own, None) is not None:
        return Reason("generator-kernel", "the kernel is a generator", "use pl.run_scoped by hand")
    return None


def _returns(function: Function) -> bool:
    def own(node: ast.AST) -> Iterator[ast.AST]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child
                yield from own(child)

    return any(isinstance(n, ast.Return) and n.value is not None for n in own(function))


def _unknown() -> Reason:
    return Reason(
        "unknown-allocation",
        "the allocation is not written where pallas-fix can see it",
        "allocate it with pltpu.ACC(mxu_index)(shape, jnp.float32) inside pl.run_scoped",
    )


def _unique(edits: list[Edit]) -> list[Edit]:
    found: list[Edit] = []
    for edit in edits:
        if edit not in found:
            found.append(edit)
    return found
