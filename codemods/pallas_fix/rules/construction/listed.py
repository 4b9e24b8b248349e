"""Accumulators of which each index of the first dimension is one: a list of 2-d ones.

`matmul_acc_lhs` and `matmul_pop` take no `.at[...]` (jax/_src/pallas/mosaic/lowering.py), but
`pl.run_scoped` binds a list of refs as one argument.
"""

from __future__ import annotations

import ast

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.extent import is_python_index
from pallas_fix.rules.construction.trouble import Made, Repair, shared_code, view_node
from pallas_fix.rules.construction.written import COLUMNS, last_dimensions
from pallas_fix.rules.mxu.acc_code import Writer


def listed(module: Facts, made: Made, dims: tuple[int | None, ...]) -> Repair | Reason:
    """Make `(n, rows, 256)` a list of n accumulators, and each `acc.at[i]` its element `acc[i]`."""
    count = dims[0]
    if len(dims) != 3 or count is None:
        return _refused("it is used as a whole, or through more than one index")
    edits: list[Edit] = []
    done: set[ast.AST] = set()
    uses = {event.node for _, event in made.events("acc", "pop")}
    for _, event in made.events("acc", "pop", "load", "store", "update", "escape"):
        where = f"line {module.span(event.node).line}"
        view = view_node(event)
        if event.kind not in ("acc", "pop") or not isinstance(view, ast.Subscript):
            return _refused(f"{where} uses it as a whole")
        index = view.slice
        if isinstance(index, ast.Tuple | ast.Slice):
            return _refused(f"{where} takes a part of one")
        if not is_python_index(module, index):
            return _refused(f"{where} indexes it by a value that is known only at run time")
        if view not in done:
            done.add(view)
            base = view.value.value if isinstance(view.value, ast.Attribute) else view.value
            parts = {"r": module.span(base), "i": module.span(index)}
            edits.append(Replace(module.span(view), Code("$r[$i]", parts)))
    allocated = _allocated(module, made, count)
    if isinstance(allocated, Reason):
        return allocated
    return shared_code(module, made, uses) or Repair((*allocated, *edits))


def _allocated(module: Facts, made: Made, count: int) -> list[Edit] | Reason:
    """`[pltpu.ACC(i)((rows, 256), dtype)] * n`; `jax.empty_ref` is called n times."""
    allocation = made.allocation
    node, shape = allocation.node, allocation.shape
    kinds = {ref.kind for _, ref in made.refs}
    if shape is None or not isinstance(node, ast.Call) or not kinds <= {"scoped", "empty"}:
        return _refused("its allocation cannot become a list where it stands")
    writer = Writer(module, node)
    texts = last_dimensions(module, writer, allocation, 1)
    if isinstance(texts, Reason):
        return texts
    new = f"({', '.join(texts)})"
    dtype = writer.hole(allocation.dtype) if allocation.dtype is not None else None
    if dtype is None:
        return _refused("its dtype is not written out")
    if kinds == {"empty"}:
        struct, where = writer.name("jax.ShapeDtypeStruct"), writer.hole(allocation.space_node)
        one = f"{writer.name('jax.empty_ref')}({struct}({new}, {dtype}), memory_space={where})"
        text = f"[{one} for _ in range({count})]"
    else:
        text = f"[{writer.hole(node.func)}({new}, {dtype})] * {count}"
    return [Replace(module.span(node), writer.code(text)), *writer.imports]


def _refused(why: str) -> Reason:
    return Reason(
        "rank",
        why,
        "allocate one 2-d accumulator for each matrix, in a list: "
        f"[pltpu.ACC(i)((rows, {COLUMNS}), jnp.float32)] * n, and index it with Python integers",
    )
