"""API039: functions of the SparseCore module that other forms have replaced."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from pallas_fix.edits import (
    Code,
    Edit,
    NameArgument,
    RenameKeyword,
    Replace,
    SetKeyword,
    Span,
)
from pallas_fix.facts import Facts
from pallas_fix.rules.access.given import given
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import Change, changed

_CHANGES = {
    "plsc.BlockSpec": changed("0.4.31", fails="0.10.1"),
    "plsc.MemoryRef": changed("0.4.31", fails="0.10.1"),
    "plsc.bitcast": changed("0.12.0.1", warns="0.12.0.1"),
    "plsc.masked_cumsum": changed("0.8.2", fails="0.8.2"),
}


class SparseCore(Rule):
    """A function of `jax.experimental.pallas.tpu_sc` is called that has another form now.

    ## What it does
    - `plsc.BlockSpec(...)` becomes `pl.BlockSpec(...)`,
    - `plsc.MemoryRef(shape, dtype, memory_space=pltpu.VMEM)` becomes `pltpu.VMEM(shape, dtype)`,
    - `plsc.bitcast(x, dtype)` becomes `pltpu.bitcast(x, dtype, dim=-1)`,
    - `plsc.masked_cumsum(x, mask)` becomes `plsc.cumsum(x, mask=mask)`.

    ## Why it fails
    `AttributeError: module 'jax.experimental.pallas.tpu_sc' has no attribute 'BlockSpec'` (and
    `MemoryRef`) since jax 0.10.1, `masked_cumsum` since 0.8.2; `plsc.bitcast` is deprecated since
    0.12.0.1 (jax/experimental/pallas/tpu_sc.py).

    ## Example
    ```python
    plsc.bitcast(x, jnp.int32)
    ```
    becomes
    ```python
    pltpu.bitcast(x, jnp.int32, dim=-1)
    ```

    ## When it is not fixed
    A block spec gathers (`indexed_by=`); the memory space is not given; a ref has a tiling;
    arguments are unpacked.

    ## What to do by hand
    A block that gathers has `pl.Indirect` in its shape now.

    ## How it is verified
    A case that reaches the call is traced. SparseCore kernels are neither compiled nor run here.
    """

    code = "API039"
    name = "sparse-core"
    triggers = ("tpu_sc",)
    messages = (r"module 'jax\.experimental\.pallas\.tpu_sc' has no attribute",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use."""
        for node, name, call in uses(module, _CHANGES):
            yield self._finding(module, call or node, name, call)

    def _finding(self, module: Facts, place: ast.expr, name: str, call: ast.Call | None) -> Finding:
        change: Change = _CHANGES[name]
        edits = _REPAIRS[name](module, call) if call else _handed_on(module, place, name)
        return self.reported(
            module, place, f"`{name}` is {change}: now {_NOW[name]}", change, edits or _NOT_PLAIN
        )


_NOW = {
    "plsc.BlockSpec": "`pl.BlockSpec`",
    "plsc.MemoryRef": "`pltpu.VMEM(shape, dtype)`",
    "plsc.bitcast": "`pltpu.bitcast(..., dim=-1)`",
    "plsc.masked_cumsum": "`plsc.cumsum(..., mask=mask)`",
}
_NOT_PLAIN = Reason(
    "call-not-plain",
    "it has arguments that have no place in the new form",
    "write the new form by hand; a block that gathers has pl.Indirect in its shape",
)


def _handed_on(module: Facts, node: ast.expr, name: str) -> tuple[Edit, ...] | None:
    """What takes the place of a function that is not called there."""
    if name not in _FUNCTIONS:
        return None
    new, text = _FUNCTIONS[name]
    spelled = module.names.spell(new, node)
    return (Replace(module.span(node), Code(text.format(spelled.text))), *spelled.imports)


_FUNCTIONS = {
    "plsc.BlockSpec": ("pl.BlockSpec", "{}"),
    "plsc.bitcast": ("pltpu.bitcast", "lambda x, dtype: {}(x, dtype, dim=-1)"),
    "plsc.masked_cumsum": ("plsc.cumsum", "lambda x, mask: {}(x, mask=mask)"),
}


def _block_spec(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    known = ("block_shape", "index_map", "pipeline_mode")
    arguments = given(call, *known)
    if arguments is None or not arguments.keys() <= {*known, "memory_space"}:
        return None
    return _now_called(module, call, "pl.BlockSpec")


def _memory_ref(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    arguments = given(call, "shape", "dtype", "memory_space")
    if arguments is None or arguments.keys() != {"shape", "dtype", "memory_space"}:
        return None
    parts: dict[str, Span] = {name: module.span(value) for name, value in arguments.items()}
    code = Code("$memory_space($shape, $dtype)", parts)
    return (Replace(module.span(call), code),)


def _bitcast(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    arguments = given(call, "x", "dtype")
    if arguments is None or arguments.keys() != {"x", "dtype"}:
        return None
    span = module.span(call)
    edits: list[Edit] = [*_now_called(module, call, "pltpu.bitcast")]
    if len(call.args) < 2:
        edits.append(RenameKeyword(span, "dtype", "ty"))
    return (*edits, SetKeyword(span, "dim", Code("-1")))


def _cumsum(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    arguments = given(call, "x", "mask")
    if arguments is None or arguments.keys() != {"x", "mask"}:
        return None
    edits: list[Edit] = [*_now_called(module, call, "plsc.cumsum")]
    if len(call.args) == 2:
        edits.append(NameArgument(module.span(call), module.span(arguments["mask"]), "mask"))
    return tuple(edits)


def _now_called(module: Facts, call: ast.Call, name: str) -> tuple[Edit, ...]:
    spelled = module.names.spell(name, call)
    return (Replace(module.span(call.func), Code(spelled.text)), *spelled.imports)


_REPAIRS: dict[str, Callable[[Facts, ast.Call], tuple[Edit, ...] | None]] = {
    "plsc.BlockSpec": _block_spec,
    "plsc.MemoryRef": _memory_ref,
    "plsc.bitcast": _bitcast,
    "plsc.masked_cumsum": _cumsum,
}
