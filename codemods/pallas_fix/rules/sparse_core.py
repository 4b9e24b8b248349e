"""API039: functions of the SparseCore module that other forms have replaced."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from pallas_fix.edits import (
    Code,
    Edit,
    Fix,
    NameArgument,
    RenameKeyword,
    Replace,
    SetKeyword,
    Span,
)
from pallas_fix.facts import Facts
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
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Attribute | ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            name = module.names.public(node)
            if name not in _CHANGES or (isinstance(node, ast.Name) and not _imported(module, node)):
                continue
            parent = module.names.parent[node]
            call = parent if isinstance(parent, ast.Call) and parent.func is node else None
            place = call or node
            if not module.is_guarded(module.span(place)):
                yield self._finding(module, place, name, call)

    def _finding(self, module: Facts, place: ast.expr, name: str, call: ast.Call | None) -> Finding:
        change: Change = _CHANGES[name]
        if call is None:
            edits = _handed_on(module, place, name)
        else:
            edits = _REPAIRS[name](module, call) if _is_plain(call) else None
        return Finding(
            self.code,
            module.span(place),
            f"`{name}` is {change}: now {_NOW[name]}",
            Fix(edits, certain=True) if edits else None,
            None if edits else _NOT_PLAIN,
            module.names.qualname(place),
            change=change,
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


def _imported(module: Facts, node: ast.Name) -> bool:
    """True for a name that an import binds, not for a variable that holds the function."""
    binding = module.names.binding(node, module.names.scope(node))
    return binding is not None and binding.kind == "import"


def _is_plain(call: ast.Call) -> bool:
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return not starred and all(keyword.arg is not None for keyword in call.keywords)


def _given(call: ast.Call, *parameters: str) -> dict[str, ast.expr] | None:
    """The arguments by the names of the parameters; None where there are others."""
    if len(call.args) > len(parameters):
        return None
    found = dict(zip(parameters, call.args, strict=False))
    found |= {str(keyword.arg): keyword.value for keyword in call.keywords}
    return found if found.keys() <= set(parameters) else None


def _block_spec(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    known = ("block_shape", "index_map", "pipeline_mode")
    given = _given(call, *known, "memory_space")
    if given is None or len(call.args) > len(known):
        return None
    return _now_called(module, call, "pl.BlockSpec")


def _memory_ref(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    given = _given(call, "shape", "dtype", "memory_space")
    if given is None or len(given) != 3:
        return None
    parts: dict[str, Span] = {name: module.span(value) for name, value in given.items()}
    code = Code("$memory_space($shape, $dtype)", parts)
    return (Replace(module.span(call), code),)


def _bitcast(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    given = _given(call, "x", "dtype")
    if given is None or len(given) != 2:
        return None
    span = module.span(call)
    edits: list[Edit] = [*_now_called(module, call, "pltpu.bitcast")]
    if len(call.args) < 2:
        edits.append(RenameKeyword(span, "dtype", "ty"))
    return (*edits, SetKeyword(span, "dim", Code("-1")))


def _cumsum(module: Facts, call: ast.Call) -> tuple[Edit, ...] | None:
    given = _given(call, "x", "mask")
    if given is None or len(given) != 2:
        return None
    edits: list[Edit] = [*_now_called(module, call, "plsc.cumsum")]
    if len(call.args) == 2:
        edits.append(NameArgument(module.span(call), module.span(given["mask"]), "mask"))
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
