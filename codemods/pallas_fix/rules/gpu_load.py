"""API014: `plgpu.load` with the index as an argument of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Fix, RemoveArgument, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed("0.11.0", warns="0.11.0", fails="0.12.0.1")


class GpuLoadIndex(Rule):
    """`plgpu.load` is given the index beside the ref.

    ## What it does
    `plgpu.load(ref, idx, ...)` becomes `plgpu.load(ref.at[idx], ...)`; an index that takes all of
    the ref, `()` or `...`, is dropped.

    ## Why it fails
    On jax 0.12.0.1: `TypeError: load() takes 1 positional argument but 2 were given`; since jax
    0.11.0 a DeprecationWarning, "Passing the index separately from the reference is deprecated"
    (jax/_src/pallas/mosaic_gpu/primitives.py).

    ## Example
    ```python
    plgpu.load(x_ref, (slice(0, 64),), layout=plgpu.Layout.WGMMA)
    ```
    becomes
    ```python
    plgpu.load(x_ref.at[slice(0, 64),], layout=plgpu.Layout.WGMMA)
    ```

    ## When it is not fixed
    The arguments are unpacked (`plgpu.load(*arguments)`), or the code must also run on jax before
    0.11.0, which takes no call without the index.

    ## What to do by hand
    Index the ref: `plgpu.load(ref.at[idx], layout=...)`.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API014"
    name = "gpu-load-index"
    triggers = ("mosaic_gpu",)
    messages = (
        r"load\(\) takes 1 positional argument but 2 (?:positional arguments )?"
        r"(?:\(and \d+ keyword-only arguments?\) )?were given",
        r"load\(\) got an unexpected keyword argument 'idx'",
        r"Passing the index separately from the reference is deprecated",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each load with an index."""
        for call in module.names.calls:
            if module.names.public(call.func) != "plgpu.load":
                continue
            if module.is_guarded(module.span(call)):
                continue
            if any(isinstance(argument, ast.Starred) for argument in call.args):
                yield self._finding(module, call, None)
                continue
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            index = call.args[1] if len(call.args) > 1 else named.get("idx")
            ref = call.args[0] if call.args else named.get("src")
            if index is not None and ref is not None:
                yield self._finding(module, call, Fix(_edits(module, call, ref, index), True))

    def _finding(self, module: Facts, call: ast.Call, fix: Fix | None) -> Finding:
        return Finding(
            self.code,
            module.span(call),
            f"the index as an argument of `plgpu.load` is {_CHANGE}: now `ref.at[idx]`",
            fix,
            None if fix else _UNPACKED,
            module.names.qualname(call),
            change=_CHANGE,
        )


_UNPACKED = Reason(
    "arguments-unpacked",
    "the arguments are unpacked, and which of them is the index cannot be seen",
    "write plgpu.load(ref.at[idx], ...) by hand",
)


def _edits(module: Facts, call: ast.Call, ref: ast.expr, index: ast.expr) -> tuple[Edit, ...]:
    drop = RemoveArgument(module.span(call), module.span(index))
    if _takes_all(index):
        return (drop,)
    parts = {"ref": module.span(ref)}
    text = "$ref.at[$index]"
    if isinstance(index, ast.Tuple):
        # Between the brackets a tuple needs no parentheses; one element keeps its comma.
        parts |= {f"i{number}": module.span(item) for number, item in enumerate(index.elts)}
        inside = ", ".join(f"$i{number}" for number in range(len(index.elts)))
        text = f"$ref.at[{inside}{',' if len(index.elts) == 1 else ''}]"
    else:
        parts["index"] = module.span(index)
    return (Replace(module.span(ref), Code(text, parts)), drop)


def _takes_all(index: ast.expr) -> bool:
    if isinstance(index, ast.Tuple):
        return not index.elts
    return isinstance(index, ast.Constant) and index.value in (Ellipsis, None)
