"""API038: calls of Mosaic GPU whose arguments have been split, moved, or have come anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import (
    Code,
    Edit,
    RemoveArgument,
    RemoveElement,
    RenameKeyword,
    Replace,
    SetKeyword,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_MESHES = frozenset({"plgpu.kernel", "plgpu.GPUMesh", "plgpu.Mesh"})
_CALLS = _MESHES | {"plgpu.async_load_tmem", "plgpu.format_tcgen05_sparse_metadata"}
_AXES = changed("0.6.0", fails="0.6.0")
_TMEM = changed("0.7.1", fails="0.7.1")
_SPARSE = changed("0.10.0", fails="0.10.0")


class GpuCalls(Rule):
    """A call of Mosaic GPU gives arguments as an older jax took them.

    ## What it does
    - `axis_names=` of `plgpu.kernel` and of a mesh is split: the names of the grid become
      `grid_names=`, that of the threads `thread_name=`;
    - the index of `plgpu.async_load_tmem(ref, idx)` goes into the ref, as `ref.at[idx]`.

    ## Why it fails
    On jax 0.6.0 and later: `TypeError: Mesh.__init__() got an unexpected keyword argument
    'axis_names'`; since 0.7.1 `async_load_tmem() takes 1 positional argument but 2 were given`;
    since 0.10.0 `format_tcgen05_sparse_metadata() missing 1 required positional argument:
    'operand_dtype'` (jax/_src/pallas/mosaic_gpu/core.py and primitives.py).

    ## Example
    ```python
    plgpu.kernel(body, grid=(2,), num_threads=2, axis_names=("x", "wg"), **others)
    ```
    becomes
    ```python
    plgpu.kernel(body, grid=(2,), num_threads=2, grid_names=("x",), thread_name="wg", **others)
    ```

    ## When it is not fixed
    The names or the grid are not written out, and there are threads; the arguments are unpacked;
    `plgpu.format_tcgen05_sparse_metadata(meta)`: the dtype of the operand, which it asks for now,
    stands elsewhere.

    ## What to do by hand
    Give the names to `grid_names=`, `cluster_names=` and `thread_name=`, and the dtype of the
    sparse operand to `format_tcgen05_sparse_metadata`.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API038"
    name = "gpu-changed-call"
    triggers = ("mosaic_gpu",)
    messages = (
        r"Mesh\.__init__\(\) got an unexpected keyword argument 'axis_names'",
        r"async_load_tmem\(\) takes 1 positional argument but",
        r"format_tcgen05_sparse_metadata\(\) missing 1 required positional argument",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each call of an old form."""
        for call in module.names.calls:
            name = module.names.public(call.func)
            if name == "functools.partial" and call.args:
                name = module.names.public(call.args[0])
            if name not in _CALLS or module.is_guarded(module.span(call)):
                continue
            if name in _MESHES and argument(call, None, "axis_names") is not None:
                edits = _split(module, call)
                message = f"`axis_names=` is {_AXES}: now `grid_names=` and `thread_name=`"
                yield self.reported(module, call, message, _AXES, edits or _NAMES)
            elif name == "plgpu.async_load_tmem" and (
                len(call.args) == 2 or argument(call, None, "idx") is not None
            ):
                message = f"an index beside the ref is {_TMEM}: now `ref.at[idx]`"
                edits = _indexed(module, call)
                yield self.reported(module, call, message, _TMEM, edits or _UNPACKED)
            elif name == "plgpu.format_tcgen05_sparse_metadata" and (
                len(call.args) + len(call.keywords) == 1
            ):
                message = f"metadata without the dtype of its operand is {_SPARSE}"
                yield self.reported(module, call, message, _SPARSE, _OPERAND)


_NAMES = Reason(
    "names-not-written-out",
    "which of the names are those of the grid, and which that of the threads, cannot be seen",
    "give grid_names= as many names as the grid has axes, and the last one to thread_name=",
)
_UNPACKED = Reason(
    "arguments-unpacked",
    "the arguments are unpacked, and which of them is the index cannot be seen",
    "write plgpu.async_load_tmem(ref.at[idx]) by hand",
)
_OPERAND = Reason(
    "operand-dtype-not-known",
    "the dtype of the sparse operand stands elsewhere",
    "give it as the second argument",
)


def _split(module: Facts, call: ast.Call) -> list[Edit] | None:
    names = argument(call, None, "axis_names")
    threads = argument(call, None, "num_threads")
    span = module.span(call)
    rename = RenameKeyword(span, "axis_names", "grid_names")
    if argument(call, None, "cluster") is not None or names is None:
        return None
    if threads is None or module.constants.fold(threads) is None:
        return [rename]
    grid = module.constants.origin(argument(call, None, "grid"))
    if not isinstance(names, ast.Tuple | ast.List):
        return None
    if grid is not None and not isinstance(grid, ast.Tuple | ast.List):
        return None
    axes = len(grid.elts) if grid is not None else 0
    if len(names.elts) != axes + 1 or any(isinstance(e, ast.Starred) for e in names.elts):
        return None
    last = module.span(names.elts[-1])
    thread = SetKeyword(span, "thread_name", Code("$name", {"name": last}))
    if axes == 0:
        return [thread, RemoveArgument(span, module.span(names))]
    return [rename, thread, RemoveElement(module.span(names), last)]


def _indexed(module: Facts, call: ast.Call) -> list[Edit] | None:
    if not call.args or any(isinstance(value, ast.Starred) for value in call.args):
        return None
    index = call.args[1] if len(call.args) == 2 else argument(call, None, "idx")
    if index is None:
        return None
    ref = call.args[0]
    drop = RemoveArgument(module.span(call), module.span(index))
    if isinstance(index, ast.Tuple) and not index.elts:
        return [drop]
    parts = {"ref": module.span(ref), "index": module.span(index)}
    return [Replace(module.span(ref), Code("$ref.at[$index]", parts)), drop]
