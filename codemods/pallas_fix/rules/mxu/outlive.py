"""Sums that must outlive an accumulator: keep the ref, and add each accumulation into it.

The MXU accumulator then holds one accumulation at a time. It is popped and added to the VMEM
ref (or the output), which keeps its own life: initial values, reads in the middle, sums over
the steps of a grid.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.edits import Bound, Code, Edit, InsertAfter, InsertFirst, RemoveStatement, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.indexing import is_zero
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Event, Region
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import ACC_DTYPES, Writer
from pallas_fix.rules.mxu.liveness import Life
from pallas_fix.rules.mxu.order import deferred
from pallas_fix.rules.mxu.popped import zeroed_pops
from pallas_fix.rules.mxu.scoping import own, scope_edit, unique, unscopable

_BOUND = (
    "each accumulation is rounded to the dtype of the ref once more: relative to the sum of the "
    "absolute terms, at most 2**-24 for each in float32, 2**-8 in bfloat16"
)
_MEMORY = frozenset({"acc", "pop", "load", "store", "update"})


@dataclass(frozen=True, slots=True)
class Outlived:
    """Edits that keep a ref beside an accumulator, and whether sums are reordered by them."""

    edits: list[Edit]
    bound: Bound | None


def outlive(module: Facts, life: Life, index: int) -> Outlived | Reason:
    """Give a ref an accumulator beside it, of the MXU `index`."""
    home = _home(module, life)
    if not isinstance(home, ast.FunctionDef):
        return _unclear("its kernel is not a plain function")
    accs = life.uses("acc")
    if not accs:
        return _unclear("nothing is accumulated into it here")
    region = _region(life.trace.root, home)
    flushes = _flushes(module, region, life) if region is not None else []
    inside = all(_within(module, node, home) for node in (*flushes, *(e.node for e in accs)))
    if not inside or not flushes:
        return _unclear("a function outside the kernel accumulates into it")
    reason = unscopable(module, home, ()) or _leaving(module, flushes)
    if reason is not None:
        return reason
    if not _named(module, life, home):
        return _unclear("the kernel does not take it as a parameter of its own")
    return _edits(module, life, index, home, flushes)


def _named(module: Facts, life: Life, home: ast.FunctionDef) -> bool:
    """True where the name of the ref means the ref all over its function."""
    base, _, _ = life.ref.name.partition("[")
    bindings = module.names.scopes[home].bindings.get(base, [])
    return len(bindings) == 1


def _leaving(module: Facts, flushes: list[ast.stmt]) -> Reason | None:
    """Why nothing can be put behind a statement: it may leave the function."""
    for statement in flushes:
        if any(isinstance(node, ast.Return) for node in own(statement)):
            return Reason(
                "returns-accumulation",
                f"line {module.span(statement).line} returns where it accumulates, so that nothing "
                "can be added to the ref after it",
                "make the accumulation a statement of its own",
            )
    return None


def _edits(
    module: Facts, life: Life, index: int, home: ast.FunctionDef, flushes: list[ast.stmt]
) -> Outlived | Reason:
    ref, name = life.ref, life.ref.name
    start = _start(module, life, flushes, home)
    if isinstance(start, Reason):
        return start
    overwrite, edits, restarts = start
    acc = module.names.fresh("acc")
    writer = Writer(module, home.body[0])
    for event in life.uses("acc"):
        call = event.call
        given = argument(call, 0, "acc") if call is not None else None
        if given is not None:
            edits.append(Replace(module.span(given), Code(acc)))
    cleared = set() if restarts else zeroed_pops(life)
    for event in life.uses("pop"):
        edits.append(Replace(module.span(event.node), Code(f"{name}[...]")))
        if event.node in cleared:
            statement = module.names.statement(event.node)
            if not isinstance(statement, ast.Assign | ast.Expr) or deferred(module, event.node):
                return _unclear("the value that is popped from it is used in the middle of code")
            zeros = Code(f"{name}[...] = {writer.name('jnp.zeros_like')}({name})")
            edits.append(InsertAfter(module.span(statement), zeros))
    pop = f"{writer.name('pltpu.matmul_pop')}({acc})"
    dtype = module.constants.dtype(ref.allocation.dtype) if ref.allocation else None
    if overwrite:
        text = f"{name}[...] = {pop}.astype({name}.dtype)"
    elif dtype in ACC_DTYPES:
        text = f"{name}[...] += {pop}"
    else:
        text = f"{name}[...] = ({name}[...] + {pop}).astype({name}.dtype)"
    for statement in flushes:
        edits.append(InsertAfter(module.span(statement), Code(text)))
    types = _types(module, life, index, home, writer)
    if isinstance(types, Reason):
        return types
    bound = Bound(2.0**-24 if dtype == "float32" else 2.0**-8, _BOUND)
    edits.append(scope_edit(module, home, [acc], types, writer))
    edits.extend(writer.imports)
    return Outlived(unique(edits), None if overwrite else bound)


def _types(
    module: Facts, life: Life, index: int, home: ast.FunctionDef, writer: Writer
) -> str | Reason:
    """The type of the accumulator, for the end of the function, where only its parameters are."""
    ref = life.ref
    if _is_parameter(module, life, home):
        allocation = ref.allocation
        dtype = module.constants.dtype(allocation.dtype) if allocation is not None else None
        wide = dtype if dtype in ACC_DTYPES else "float32"
        shape = f"{ref.name}.shape"
        return f"{writer.name('pltpu.ACC')}({index})({shape}, {writer.name(f'jnp.{wide}')})"
    if ref.allocation is None:
        return _unclear("the kernel does not take it as a parameter of its own")
    return writer.accumulator(ref.allocation, index)


def _start(
    module: Facts, life: Life, flushes: list[ast.stmt], home: ast.FunctionDef
) -> tuple[bool, list[Edit], bool] | Reason:
    """Whether the first accumulation may overwrite the ref, with the edits for its start.

    The last part says whether these edits zero the ref after each of its pops.
    """
    stores = life.uses("store")
    zeros = [event for event in stores if is_zero(event.value, module.names)]
    if life.ref.kind == "operand" and not life.uses("load", "update", "pop"):
        once = len(flushes) == 1 and not _repeated(life.trace.root, flushes[0], module)
        if once and not life.obstacle and len(zeros) == len(stores) and _one_step(module, life):
            return True, [RemoveStatement(module.span(event.node)) for event in zeros], False
    if stores:
        return False, [], False
    axes = {_last_axes(life.trace.root, event) for event in life.uses("pop")}
    found = axes.pop() if len(axes) == 1 else None
    if (found or _fresh(life)) and _is_parameter(module, life, home):
        writer = Writer(module, home.body[0])
        name = life.ref.name
        text = f"{name}[...] = {writer.name('jnp.zeros_like')}({name})"
        if found and not _fresh(life):
            program = writer.name("pl.program_id")
            tests = [f"{program}({axis}) == 0" for axis in found]
            test = tests[0] if len(tests) == 1 else " & ".join(f"({one})" for one in tests)
            text = f"@{writer.name('pl.when')}({test})\ndef _():\n    {text}"
        first = InsertFirst(module.span(home), Code(text))
        return False, [first, *writer.imports], not _fresh(life)
    return Reason(
        "never-initialised",
        f"nothing in the kernel gives {life.ref.name or 'the ref'} its first value, and it has to "
        f"outlive an accumulator: {life.obstacle or 'it is an operand of the kernel'}",
        "zero it at the first step, under pl.when(pl.program_id(axis) == 0)",
    )


def _fresh(life: Life) -> bool:
    """True for a ref that begins anew each time its function runs."""
    launch = life.trace.launch
    once = life.ref.kind == "scratch" and launch is not None and not launch.repeats
    return once or life.ref.kind == "scoped"


def _is_parameter(module: Facts, life: Life, home: ast.FunctionDef) -> bool:
    base, _, _ = life.ref.name.partition("[")
    return module.names.scopes[home].bindings[base][0].kind == "param"


def _one_step(module: Facts, life: Life) -> bool:
    """True where the kernel runs once, so that no earlier step can have left a sum."""
    launch = life.trace.launch
    if launch is None or not launch.repeats:
        return launch is not None
    grid = module.constants.fold(launch.grid)
    return grid in (1, ()) or (isinstance(grid, tuple) and set(grid) == {1})


def _home(module: Facts, life: Life) -> Function | None:
    """The function in which the ref is a parameter, or a local variable."""
    ref = life.ref
    if ref.kind in ("scratch", "operand"):
        return life.trace.function
    if ref.kind == "empty":
        return next(module.names.enclosing(ref.node), None)
    for event in life.events:
        for function in event.functions:
            named = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            if ref.name in {a.arg for a in named}:
                return function
    return None


def _region(region: Region, home: Function) -> Region | None:
    if region.kind == "body" and region.node is home:
        return region
    for item in region.items:
        found = _region(item, home) if isinstance(item, Region) else None
        if found is not None:
            return found
    return None


def _flushes(module: Facts, region: Region, life: Life) -> list[ast.stmt]:
    """The statements after which what was accumulated is added to the ref, each once."""
    found: list[ast.stmt] = []
    pending: ast.stmt | None = None
    for item in region.items:
        events = [item] if isinstance(item, Event) else list(item.events())
        kinds = {e.kind for e in events if e in life.events and e.kind in _MEMORY}
        if not kinds:
            continue
        if kinds == {"acc"}:
            node = item.node if isinstance(item, Event) else item.at or item.node
            pending = module.names.statement(node)
            continue
        if pending is not None:
            found.append(pending)
            pending = None
        if isinstance(item, Region):
            found.extend(_flushes(module, item, life))
    if pending is not None:
        found.append(pending)
    return list(dict.fromkeys(found))


def _within(module: Facts, node: ast.AST, home: Function) -> bool:
    return home in module.names.enclosing(node)


def _paths(
    region: Region, path: tuple[Region, ...] = ()
) -> Iterator[tuple[Event, tuple[Region, ...]]]:
    for item in region.items:
        if isinstance(item, Event):
            yield item, (*path, region)
        else:
            yield from _paths(item, (*path, region))


def _last_axes(root: Region, event: Event) -> tuple[int, ...] | None:
    """The axes of the grid at whose last steps an event runs, if that is all it depends on."""
    for found, path in _paths(root):
        if found is event:
            inner = [region for region in path if region.kind != "body"]
            tests = [region.test for region in inner]
            if all(test is not None and test.edge == "last" for test in tests):
                return tuple(sorted({test.axis for test in tests if test is not None}))
    return None


def _repeated(root: Region, statement: ast.stmt, module: Facts) -> bool:
    """True where a statement lies in a loop of the walk."""
    for event, path in _paths(root):
        if module.names.statement(event.node) is statement:
            return any(region.kind in ("loop", "unrolled", "unknown") for region in path)
    return False


def _unclear(why: str) -> Reason:
    return Reason(
        "sum-outlives-accumulator",
        f"the sum has to outlive an accumulator, and {why}",
        "allocate a pltpu.ACC in the kernel, pop it after each accumulation and add the value to "
        "this ref",
    )
