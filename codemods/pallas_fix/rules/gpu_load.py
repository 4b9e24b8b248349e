"""API014: `plgpu.load` with the index as an argument of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, RemoveArgument, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.access.handed import calls_of
from pallas_fix.rules.access.kept import comments_of_argument
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
        for call in _loads(module):
            if module.is_guarded(module.span(call)):
                continue
            if any(isinstance(argument, ast.Starred) for argument in call.args):
                yield self._finding(module, call, None)
                continue
            named = {keyword.arg: keyword.value for keyword in call.keywords}
            index = call.args[1] if len(call.args) > 1 else named.get("idx")
            ref = call.args[0] if call.args else named.get("src")
            if index is not None and ref is not None:
                edits = tuple(_edits(module, call, ref, index))
                yield self._finding(module, call, edits)

    def _finding(self, module: Facts, call: ast.Call, edits: tuple[Edit, ...] | None) -> Finding:
        return self.reported(
            module,
            call,
            f"the index as an argument of `plgpu.load` is {_CHANGE}: now `ref.at[idx]`",
            _CHANGE,
            edits or _UNPACKED,
        )


_UNPACKED = Reason(
    "arguments-unpacked",
    "the arguments are unpacked, and which of them is the index cannot be seen",
    "write plgpu.load(ref.at[idx], ...) by hand",
)


def _edits(module: Facts, call: ast.Call, ref: ast.expr, index: ast.expr) -> Iterator[Edit]:
    yield RemoveArgument(module.span(call), module.span(index))
    if _takes_all(index):
        return
    parts = {"ref": module.span(ref)}
    text = "$ref.at[$index]"
    if isinstance(index, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in index.elts):
        # Between the brackets a tuple needs no parentheses; one element keeps its comma.
        parts |= {f"i{number}": module.span(item) for number, item in enumerate(index.elts)}
        inside = ", ".join(f"$i{number}" for number in range(len(index.elts)))
        text = f"$ref.at[{inside}{',' if len(index.elts) == 1 else ''}]"
    else:
        parts["index"] = module.span(index)
    yield Replace(module.span(ref), Code(text, parts))
    yield from comments_of_argument(module, call, index, parts.values())


def _takes_all(index: ast.expr) -> bool:
    if isinstance(index, ast.Tuple):
        return not index.elts or (len(index.elts) == 1 and _takes_all(index.elts[0]))
    return isinstance(index, ast.Constant) and index.value in (Ellipsis, None)


def _loads(module: Facts) -> Iterator[ast.Call]:
    """The calls of `plgpu.load`, also of one that has its keyword arguments bound already."""
    for call in module.names.calls:
        name = module.names.public(call.func)
        if name == "plgpu.load":
            yield call
        elif name == "functools.partial" and [*map(module.names.public, call.args)] == [
            "plgpu.load"
        ]:
            later = calls_of(module, call.args[0]) or ()
            yield from (one for one in later if one is not call)
