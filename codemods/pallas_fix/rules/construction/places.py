"""Places where an accumulator space may not stand: block specs, and `@ mesh`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import RemoveArgument, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.rules.construction.trouble import Repair, Trouble
from pallas_fix.rules.mxu.acc_code import Writer


def wrong_place(module: Facts) -> Iterator[Trouble]:
    """Block specs in accumulator memory, and accumulator spaces of a mesh."""
    for call in module.names.calls:
        if module.names.qualified(call.func) == "pl.BlockSpec":
            given = argument(call, None, "memory_space")
            space = module.allocations.space(given)
            if given is not None and space is not None and space[0] == "pltpu.ACC":
                message = "operands of a kernel cannot be in accumulator memory"
                yield Trouble(call, message, _without_space(module, call, given))
    for node in module.index.all(ast.BinOp):
        if isinstance(node.op, ast.MatMult):
            space = module.allocations.space(node.left)
            if space is not None and space[0] == "pltpu.ACC":
                message = "an accumulator belongs to a core, so its space cannot be put on a mesh"
                yield Trouble(node, message, _without_mesh(module, node))


def _without_space(module: Facts, spec: ast.Call, given: ast.expr) -> Repair:
    """Drop the memory space; a spec that says nothing more goes with its keyword."""
    keyword = module.names.parent[spec]
    alone = not spec.args and len(spec.keywords) == 1
    if alone and isinstance(keyword, ast.keyword) and keyword.arg in ("in_specs", "out_specs"):
        owner = module.names.parent[keyword]
        return Repair((RemoveArgument(module.span(owner), module.span(spec)),), certain=False)
    return Repair((RemoveArgument(module.span(spec), module.span(given)),), certain=False)


def _without_mesh(module: Facts, node: ast.BinOp) -> Repair:
    parent = module.names.parent[node]
    writer = Writer(module, node)
    space = writer.hole(node.left)
    if isinstance(parent, ast.Call) and parent.func is node and not parent.keywords:
        arguments = ", ".join(writer.hole(part) for part in parent.args)
        return Repair((Replace(module.span(parent), writer.code(f"{space}({arguments})")),), False)
    return Repair((Replace(module.span(node), writer.code(space)),), certain=False)
