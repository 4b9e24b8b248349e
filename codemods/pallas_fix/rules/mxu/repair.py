"""From refs that reach the MXU to findings: which belong together, and how each is repaired."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import AddImport, Bound, Edit, Fix, RemoveStatement, Replace, Span
from pallas_fix.facts import Facts
from pallas_fix.facts.values import Ref, Trace
from pallas_fix.rules.base import Finding, Reason
from pallas_fix.rules.mxu.acc_code import ACC_DTYPES, Mxu, narrow
from pallas_fix.rules.mxu.index import ENTRIES, MXUS, mxu_index
from pallas_fix.rules.mxu.liveness import Life, life
from pallas_fix.rules.mxu.outlive import outlive
from pallas_fix.rules.mxu.pieces import pieces
from pallas_fix.rules.mxu.relocate import relocate
from pallas_fix.rules.mxu.scoping import Placed, unique
from pallas_fix.rules.mxu.spread import spread
from pallas_fix.rules.mxu.swap import swap
from pallas_fix.rules.mxu.uses import use_edits
from pallas_fix.targets import TARGETS


@dataclass(slots=True)
class Group:
    """Refs that share code, and so are repaired together or not at all."""

    members: list[tuple[Trace, Ref]]
    nodes: set[ast.AST]


@dataclass(frozen=True, slots=True)
class Repair:
    """The edits of a group. `plain` where no use changes: only the allocation moves."""

    edits: list[Edit]
    plain: bool
    bound: Bound | None = None


def groups(module: Facts, wanted: Callable[[Trace, Ref], bool]) -> list[Group]:
    """The wanted refs, those together that some line of code uses in turn."""
    found: list[Group] = []
    for trace in module.traces:
        for ref in trace.refs:
            events = trace.uses(ref)
            if not events or not wanted(trace, ref):
                continue
            nodes = {e.node for e in events if e.kind != "meta"}
            if ref.allocation is not None:
                nodes.add(ref.allocation.node)
            merged = Group([(trace, ref)], nodes)
            for group in [g for g in found if g.nodes & nodes]:
                merged.members = group.members + merged.members
                merged.nodes |= group.nodes
                found.remove(group)
            found.append(merged)
    return found


def reaches_mxu(trace: Trace, ref: Ref) -> bool:
    """True for a ref that `matmul_acc_lhs` or `matmul_pop` gets."""
    return any(event.kind in ("acc", "pop") for event in trace.uses(ref))


def repair(module: Facts, group: Group) -> Repair | Reason:
    """Make every ref of a group an accumulator, or give it one."""
    lives: list[Life] = []
    placed: list[Placed] = []
    indexed: list[Replace] = []
    for trace, ref in group.members:
        found = life(module, trace, ref)
        if isinstance(found, Reason):
            parts = pieces(module, trace, ref) if len(group.members) == 1 else None
            return Repair(parts, plain=False) if parts is not None else found
        own = _own_index(module, ref)
        index: Mxu | Reason = mxu_index(module, trace, ref) if own is None else own
        if isinstance(index, Reason):
            split = spread(module, found) if ref.kind in ("scratch", "scoped") else None
            if split is None:
                return index
            index = split.indices
            indexed.extend(split.edits)
        lives.append(found)
        placed.append(Placed(trace, ref, index))
    reason = _limits(module, placed)
    if reason is not None:
        return reason
    if any(one.obstacle or one.ref.kind == "operand" for one in lives):
        return _beside(module, lives, placed)
    return _instead(module, lives, placed, indexed)


def _instead(
    module: Facts, lives: Sequence[Life], placed: Sequence[Placed], indexed: list[Replace]
) -> Repair | Reason:
    """The refs become accumulators."""
    narrows = {narrow(module, one.ref.allocation) for one in lives}
    if len(narrows) > 1:
        return Reason(
            "mixed-dtypes",
            "the same code accumulates in refs of several dtypes",
            "accumulate in float32 and cast the popped values",
        )
    uses = use_edits(module, lives, narrows.pop())
    if isinstance(uses, Reason):
        return uses
    reason = _foreign(module, uses.nodes, [one.ref for one in lives])
    if reason is not None:
        return reason
    gone = [edit.span for edit in uses.edits if isinstance(edit, RemoveStatement)]
    kept = [e for e in indexed if not any(span.contains(e.span) for span in gone)]
    edits = unique([*uses.edits, *kept])
    in_place = [p for p in placed if p.ref.kind in ("scoped", "empty") and not _is_acc(p.ref)]
    moving = [p for p in placed if p.ref.kind == "scratch"]
    for step, items in ((swap, in_place), (relocate, moving)):
        made = step(module, items) if items else []
        if isinstance(made, Reason):
            return made
        edits.extend(made)
    return Repair(edits, plain=not uses.edits and not indexed)


def _beside(module: Facts, lives: Sequence[Life], placed: Sequence[Placed]) -> Repair | Reason:
    """The refs stay, each with an accumulator beside it."""
    if any(_is_acc(one.ref) for one in lives):
        obstacle = next((one.obstacle for one in lives if one.obstacle), "it is an operand")
        return Reason(
            "accumulator-cannot-hold",
            f"an accumulator cannot do what the kernel asks of it: {obstacle}",
            "keep the sum in a VMEM ref, pop the accumulator after each accumulation and add",
        )
    first = next(one for one in lives if one.obstacle or one.ref.kind == "operand")
    # Sums that share no code wait for the next pass.
    names = (first.trace.function, first.ref.name)
    same = [n for n, one in enumerate(lives) if (one.trace.function, one.ref.name) == names]
    nodes = {e.node for n in same for e in lives[n].events if e.kind != "meta"}
    rest = [one for n, one in enumerate(lives) if n not in same]
    shared = any(e.node in nodes for one in rest for e in one.events)
    lives, placed = [lives[n] for n in same], [placed[n] for n in same]
    index = placed[0].index
    if shared or len({p.index for p in placed}) > 1 or not isinstance(index, int):
        return Reason(
            "several-sums",
            "several sums that outlive their accumulators share code",
            "repair them one by one: pop after each accumulation and add to the VMEM ref",
        )
    reason = _foreign(
        module, {e.node for e in lives[0].uses("acc", "pop")}, [p.ref for p in placed]
    )
    if reason is not None:
        return reason
    made = outlive(module, lives[0], index)
    if isinstance(made, Reason):
        return made
    return Repair(made.edits, plain=False, bound=made.bound)


def in_scratch_list(_: Trace, ref: Ref) -> bool:
    """True for an accumulator that is allocated in a scratch list, which jax refuses."""
    return ref.kind == "scratch" and _is_acc(ref)


def _own_index(module: Facts, ref: Ref) -> int | None:
    """The MXU that an accumulator names itself, if it names one that exists."""
    if not _is_acc(ref) or ref.allocation is None:
        return None
    index = module.constants.fold(ref.allocation.index)
    return index if index in range(MXUS) and isinstance(index, int) else None


def _is_acc(ref: Ref) -> bool:
    return ref.space == "pltpu.ACC"


def _foreign(module: Facts, nodes: set[ast.AST], refs: Sequence[Ref]) -> Reason | None:
    """Why uses cannot change: other refs pass through the same code."""
    for trace in module.traces:
        for event in trace.root.events():
            if event.node in nodes and event.ref is not None and event.ref not in refs:
                line = module.span(event.node).line
                return Reason(
                    "shared-code",
                    f"line {line} also runs with another ref, which must stay as it is",
                    "give the accumulator a helper function of its own",
                )
    return None


def _limits(module: Facts, placed: Sequence[Placed]) -> Reason | None:
    """What no accumulator may be (jax/_src/pallas/mosaic/core.py, check_accumulator_ref)."""
    entries: dict[tuple[int, int], int] = {}
    for item in placed:
        if item.ref.allocation is None or _is_acc(item.ref):
            continue
        shape = module.constants.shape(item.ref.allocation.shape)
        if shape is None:
            continue
        if len(shape) != 2:
            return Reason(
                "rank",
                f"the ref has {len(shape)} dimensions, and an accumulator has 2",
                "allocate one 2-d pltpu.ACC for each matrix, in a list",
            )
        rows, columns = shape
        if columns is not None and columns != 256:
            return Reason(
                "minor-dimension",
                f"the last dimension is {columns}, and that of an accumulator is 256",
                "tile the columns by 256, one accumulator each",
            )
        if rows is not None and rows % 8:
            return Reason(
                "row-count",
                f"the ref has {rows} rows, and an accumulator takes a multiple of 8 (16 for "
                "bf16 operands, 32 for 8-bit ones)",
                "pad the rows of the left operand and of the accumulator",
            )
        for mxu in item.index if isinstance(item.index, tuple) else (item.index,):
            key = (id(item.trace), mxu)
            entries[key] = entries.get(key, 0) + (rows or 0) // 8
            if entries[key] > ENTRIES:
                return Reason(
                    "accumulator-space",
                    f"the accumulators of MXU {mxu} need {entries[key]} entries, and a TPU7x has "
                    f"{ENTRIES} (8 rows each)",
                    "use smaller tiles, the other MXU, or one pl.run_scoped after the other",
                )
    return None


def findings(
    module: Facts,
    code: str,
    wanted: Callable[[Trace, Ref], bool],
    message: Callable[[Ref], str],
    targets: Sequence[str] = (),
) -> Iterator[Finding]:
    """One finding for each group of wanted refs; `targets` are the chips that the user named."""
    for group in groups(module, wanted):
        trace, ref = group.members[0]
        node = _site(trace, ref)
        if module.is_guarded(module.span(node)):
            continue
        made = no_accumulators(targets) or repair(module, group)
        if isinstance(made, Repair) and any(map(module.is_guarded, _spans(made.edits))):
            made = Reason(
                "version-guard",
                "some of its uses stand in code for one of several versions of jax, which is left "
                "as it is",
                "repair them by hand, or drop the test of the version",
            )
        function = module.names.qualname(node)
        if isinstance(made, Reason):
            yield Finding(code, module.span(node), message(ref), None, made, function)
            continue
        ran = tuple(
            dict.fromkeys(module.names.scopes[t.function].qualname for t, _ in group.members)
        )
        accumulates = any(
            event.kind == "acc" for trace, ref in group.members for event in trace.uses(ref)
        )
        certain = made.plain and accumulates and _dtypes_fit(module, group)
        fix = Fix(tuple(made.edits), certain, made.bound, ran)
        notes = (f"the fix reorders a sum: {made.bound.text}",) if made.bound else ()
        yield Finding(code, module.span(node), message(ref), fix, None, function, notes)


def _spans(edits: Sequence[Edit]) -> Iterator[Span]:
    return (edit.span for edit in edits if not isinstance(edit, AddImport))


def _dtypes_fit(module: Facts, group: Group) -> bool:
    """True where the refs are known to have dtypes that accumulators can have."""
    allocations = (ref.allocation for _, ref in group.members if ref.allocation is not None)
    dtypes = [a.dtype for a in allocations if a.dtype is not None]
    return all(module.constants.dtype(dtype) in ACC_DTYPES for dtype in dtypes)


def no_accumulators(targets: Sequence[str]) -> Reason | None:
    """Why nothing can be repaired for chips that have no accumulators, if none has."""
    named = [TARGETS[name] for name in targets if name in TARGETS]
    chips = [target for target in named if target.platform == "tpu"]
    if not chips or any(chip.accumulators for chip in chips):
        return None
    return Reason(
        "no-accumulators",
        f"{', '.join(chip.name for chip in chips)}: no MXU accumulators (they came with TPU7x)",
        "use pltpu.matmul_lhs_fifo and pltpu.matmul_pop_fifo there",
    )


def _site(trace: Trace, ref: Ref) -> ast.AST:
    """Where a person would look: the allocation, else the first use as an accumulator."""
    if ref.allocation is not None:
        return ref.allocation.node
    uses = (event.node for event in trace.uses(ref) if event.kind in ("acc", "pop"))
    return next(uses, trace.function)
