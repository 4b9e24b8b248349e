"""Block specs with a moving window over an array that stays in HBM.

The pipeline copies windows into VMEM or SMEM only: in `pl.ANY` and `pltpu.HBM` a kernel sees the
whole array (`_check_block_mappings` in jax/_src/pallas/mosaic/lowering.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Edit, RemoveArgument
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import Event, Ref, Trace, View
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.trouble import Repair, Trouble

_WHOLE = frozenset({"pl.MemorySpace.ANY", "pltpu.ANY", "pltpu.HBM"})
_COPIES = frozenset({"pltpu.sync_copy", "pltpu.make_async_copy", "pltpu.async_copy"})


def windowed_any(module: Facts) -> Iterator[Trouble]:
    """Block specs in whole-array memory whose window certainly moves."""
    done: set[ast.AST] = set()
    for trace in module.traces:
        if trace.launch is None or trace.launch.kind != "pallas_call":
            continue
        for ref, spec in _specs(module, trace):
            space = argument(spec, None, "memory_space")
            if spec in done or space is None or not _is_windowed(module, spec):
                continue
            if module.names.qualified(module.constants.origin(space) or space) not in _WHOLE:
                continue
            done.add(spec)
            message = f"a window cannot move over an array that stays in `{module.source(space)}`"
            yield Trouble(spec, message, _repair(module, trace, ref, spec, space))


def _specs(module: Facts, trace: Trace) -> Iterator[tuple[Ref, ast.Call]]:
    """The operands of a launch, each with its own block spec."""
    launch = trace.launch
    if launch is None:
        return
    for ref in trace.refs:
        if ref.kind != "operand":
            continue
        if ref.output is not None:
            keyword, position = "out_specs", ref.output
        elif ref.name in trace.parameters:
            keyword = "in_specs"
            position = trace.parameters.index(ref.name) - launch.prefetched
        else:
            continue
        given = module.constants.origin(argument(launch.scratch_owner, None, keyword))
        if isinstance(given, ast.Tuple | ast.List):
            given = given.elts[position] if 0 <= position < len(given.elts) else None
        spec = module.constants.origin(given)
        if isinstance(spec, ast.Call) and module.names.qualified(spec.func) == "pl.BlockSpec":
            yield ref, spec


def _is_windowed(module: Facts, spec: ast.Call) -> bool:
    """True for an index map that does not return zeros only."""
    if argument(spec, 0, "block_shape") is None:
        return False
    index_map = argument(spec, 1, "index_map")
    function = module.names.definition(index_map) if index_map is not None else None
    if not isinstance(function, ast.Lambda):
        return False
    parts = function.body.elts if isinstance(function.body, ast.Tuple) else [function.body]
    return any(module.constants.fold(part) != 0 for part in parts)


def _repair(
    module: Facts, trace: Trace, ref: Ref, spec: ast.Call, space: ast.expr
) -> Repair | Reason:
    events = [event for event in trace.uses(ref) if event.kind != "meta"]
    kinds = {_use(module, event) for event in events}
    if kinds == {"window"}:
        edit = RemoveArgument(module.span(spec), module.span(space))
        return Repair((edit,), certain=False)
    if kinds == {"slice"}:
        window = (argument(spec, 0, "block_shape"), argument(spec, 1, "index_map"))
        edits: list[Edit] = [
            RemoveArgument(module.span(spec), module.span(part)) for part in window if part
        ]
        return Repair(tuple(edits), certain=False)
    return Reason(
        "window-or-array",
        "whether the kernel means the window or the whole array does not follow from its uses",
        "drop memory_space= to read windows, or block_shape and index_map to slice the array in "
        "the kernel (ref.at[pl.ds(start, size)])",
    )


def _use(module: Facts, event: Event) -> str:
    """`window` for reading and copying what the ref is, `slice` for a part of it, else ``."""
    sliced = isinstance(event.how, View) and not event.how.whole
    if event.kind in ("load", "store", "update"):
        return "window" if not sliced else ""
    copies = isinstance(event.node, ast.Call) and (
        module.names.qualified(event.node.func) in _COPIES
    )
    if event.kind == "view":
        return "slice" if sliced else "window"
    return ("slice" if sliced else "window") if event.kind == "escape" and copies else ""
