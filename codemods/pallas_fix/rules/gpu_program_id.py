"""API037: `pl.program_id` in a kernel of `plgpu.kernel`, whose grid axes have names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Fix, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed("0.6.1", warns="0.11.2")
_NOW = {"pl.program_id": "axis_index", "pl.num_programs": "axis_size"}


class GpuProgramId(Rule):
    """`pl.program_id` or `pl.num_programs` is asked in a kernel of `plgpu.kernel`.

    ## What it does
    `pl.program_id(n)` becomes `jax.lax.axis_index(name)`, `pl.num_programs(n)` becomes
    `jax.lax.axis_size(name)`, with the name that `grid_names` of the launch gives to axis `n`.

    ## Why it fails
    Since jax 0.11.2 a DeprecationWarning: "Using pl.program_id in Pallas MGPU is deprecated. Use
    jax.lax.axis_index instead." (jax/_src/pallas/mosaic_gpu/lowering.py).

    ## Example
    ```python
    def body(x_ref, o_ref):
        rows = pl.ds(pl.program_id(0) * 64, 64)

    plgpu.kernel(body, grid=(2,), grid_names=("rows",), **others)
    ```
    becomes
    ```python
    def body(x_ref, o_ref):
        rows = pl.ds(jax.lax.axis_index("rows") * 64, 64)
    ```

    ## When it is not fixed
    The axis or the names are not written out; launches with other names share the function; the
    grid has clusters, in which a program is no cell of the grid; the function is not seen to be
    launched.

    ## What to do by hand
    Ask for the axis by its name.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API037"
    name = "gpu-program-id"
    triggers = ("mosaic_gpu",)
    messages = (r"Using pl\.program_id in Pallas MGPU is deprecated",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each call in a kernel of `plgpu.kernel`."""
        calls = [c for c in module.names.calls if module.names.public(c.func) in _NOW]
        if not calls:
            return
        kernels = _kernels(module)
        for call in calls:
            launches = [
                launch
                for function in module.names.enclosing(call)
                for launch in kernels.get(function, ())
            ]
            if launches and not module.is_guarded(module.span(call)):
                yield self._finding(module, call, launches)

    def _finding(self, module: Facts, call: ast.Call, launches: list[Launch]) -> Finding:
        old = module.names.public(call.func) or ""
        now = _NOW[old]
        fix, reason = None, None
        names = {_axis(module, call, launch) for launch in launches}
        name = next(iter(names))
        if len(names) == 1 and name is not None:
            spelled = module.names.spell(f"lax.{now}", call)
            code = Code(f'{spelled.text}("{name}")')
            fix = Fix((Replace(module.span(call), code), *spelled.imports), certain=True)
        else:
            reason = _NO_NAME
        return Finding(
            self.code,
            module.span(call),
            f"`{old}` in a kernel of `plgpu.kernel` is {_CHANGE}: now `jax.lax.{now}`",
            fix,
            reason,
            module.names.qualname(call),
            change=_CHANGE,
        )


_NO_NAME = Reason(
    "axis-not-known",
    "which name the launch gives to this axis of its grid cannot be seen",
    "write jax.lax.axis_index(name) with the name in grid_names=",
)


def _kernels(module: Facts) -> dict[Function, list[Launch]]:
    """The functions that `plgpu.kernel` launches."""
    found: dict[Function, list[Launch]] = {}
    for launch in module.launches:
        kernel = launch.kernel
        if launch.kind != "gpu_kernel" or kernel is None:
            continue
        if isinstance(kernel, ast.Call) and kernel.args:  # functools.partial(kernel, ...)
            kernel = kernel.args[0]
        function = (
            kernel if isinstance(kernel, ast.FunctionDef) else module.names.definition(kernel)
        )
        if function is not None:
            found.setdefault(function, []).append(launch)
    return found


def _axis(module: Facts, call: ast.Call, launch: Launch) -> str | None:
    """The name that a launch gives to the axis that the call asks for."""
    if any(argument(launch.call, None, word) for word in ("cluster", "cluster_names")):
        return None
    axis = module.constants.fold(argument(call, 0, "axis"))
    names = module.constants.fold(argument(launch.call, None, "grid_names"))
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, tuple) or not isinstance(axis, int) or not 0 <= axis < len(names):
        return None
    name = names[axis]
    return name if isinstance(name, str) and name.isidentifier() else None
