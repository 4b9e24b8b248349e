"""API022: values that launches, slices and pipelines of Pallas do not take any more."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from pallas_fix.edits import (
    Code,
    Edit,
    NameArgument,
    RemoveArgument,
    RenameKeyword,
    Replace,
    SetKeyword,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.rules.access.given import given, is_none
from pallas_fix.rules.access.kept import kept_comments
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import Change, changed

_GRID = changed(fails="0.4.31")
_SLICE = changed(fails="0.11.1")
_MEMORY = changed("0.4.31", fails="0.7.1")
_LOOKAHEAD = changed("0.7.1", fails="0.7.1")
_BUFFERED = changed("0.8.2", fails="0.8.2")
_KINDS = ("input", "output", "input_output", "create", "accumulator")

Made = tuple[str, Change, list[Edit] | Reason]


class LaunchArguments(Rule):
    """A launch, a slice, a ref or a pipeline is made with a value that it does not take any more.

    ## What it does
    - `grid=None` of a launch or a grid spec becomes `grid=()`;
    - `pl.ds(start, None)` becomes `pl.ds(start)`;
    - `pl.MemoryRef(shape, dtype, space)` becomes `space(shape, dtype)`;
    - `use_lookahead=True` of `pltpu.emit_pipeline` moves to the block specs of its inputs, as
      `pipeline_mode=pl.Buffered(2, use_lookahead=True)`; `use_lookahead=False` goes;
    - `dtype=` of `pltpu.BufferedRef.input` and its kin becomes `dtype_or_type=`, and the rank of
      the grid, which is asked for now, comes from the index map.

    ## Why it fails
    `TypeError: 'NoneType' object is not iterable` since jax 0.4.31; `AssertionError:
    DShapedArray(shape=(None, 128), ...)` since 0.11.1; `MemoryRef.__init__() takes 3 positional
    arguments but 4 were given` since 0.7.1; `emit_pipeline() got an unexpected keyword argument
    'use_lookahead'` since 0.7.1 (jax/_src/pallas/core.py, jax/_src/pallas/mosaic/pipeline.py).

    ## Example
    ```python
    x_ref[pl.ds(8, None)]
    ```
    becomes
    ```python
    x_ref[pl.ds(8)]
    ```

    ## When it is not fixed
    The memory space, the block specs or the index map are not written out.

    ## What to do by hand
    Give `pipeline_mode=` to each block spec that is to look ahead, and `grid_rank=` the number of
    axes of the grid.

    ## How it is verified
    The kernel is traced, lowered, compiled and run after the fix; with `--before-python`, an
    interpreter whose jax still takes the old form, before it too.
    """

    code = "API022"
    name = "launch-arguments"
    triggers = ("pallas",)
    messages = (
        r"'NoneType' object is not iterable",
        r"DShapedArray\(shape=\(None",
        r"MemoryRef\.__init__\(\) takes 3 positional arguments but 4 were given",
        r"emit_pipeline\(\) got an unexpected keyword argument 'use_lookahead'",
        r"BufferedRef\.\w+\(\) missing 1 required positional argument: 'dtype_or_type'",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each call of an old form."""
        for call in module.names.calls:
            name = module.names.public(call.func)
            if name == "functools.partial" and call.args:
                name = module.names.public(call.args[0])
                name = name if name in _GRIDS else None
            look = _LOOKS.get(name or "")
            if look is None or module.is_guarded(module.span(call)):
                continue
            made = look(module, call)
            if made is None:
                continue
            message, change, result = made
            yield self.reported(module, call, message, change, result)


_UNKNOWN = Reason(
    "not-written-out",
    "what the new form needs is not written out there",
    "write the new form by hand",
)


def _grid(module: Facts, call: ast.Call) -> Made | None:
    value = argument(call, None, "grid")
    edits = [Replace(module.span(arm), Code("()")) for arm in _nones(value)]
    message = f"`grid=None` is {_GRID}: now `grid=()`"
    return (message, _GRID, [*edits]) if edits else None


def _nones(value: ast.expr | None) -> Iterator[ast.expr]:
    """The places in a condition where an argument is `None`."""
    if isinstance(value, ast.IfExp):
        yield from _nones(value.body)
        yield from _nones(value.orelse)
    elif value is not None and is_none(value):
        yield value


def _slice(module: Facts, call: ast.Call) -> Made | None:
    arguments = given(call, "start", "size", "stride")
    size = (arguments or {}).get("size")
    if size is None or not is_none(size):
        return None
    message = f"a slice of the size `None` is {_SLICE}: now without a size"
    span = module.span(call)
    edits: list[Edit] = [RemoveArgument(span, module.span(size))]
    if len(call.args) == 3:
        edits.append(NameArgument(span, module.span(call.args[2]), "stride"))
    return message, _SLICE, edits


def _memory(module: Facts, call: ast.Call) -> Made | None:
    arguments = given(call, "shape", "dtype", "memory_space")
    if arguments is None or arguments.keys() != {"shape", "dtype", "memory_space"}:
        return None
    message = f"`pl.MemoryRef(shape, dtype, space)` is {_MEMORY}: now `space(shape, dtype)`"
    space = arguments["memory_space"]
    if module.names.public(space) is None:
        return message, _MEMORY, _UNKNOWN
    parts = {name: module.span(value) for name, value in arguments.items()}
    code = Code("$memory_space($shape, $dtype)", parts)
    comments = kept_comments(module, call, parts.values())
    return message, _MEMORY, [Replace(module.span(call), code), *comments]


def _lookahead(module: Facts, call: ast.Call) -> Made | None:
    value = argument(call, None, "use_lookahead")
    if value is None:
        return None
    message = f"`use_lookahead=` is {_LOOKAHEAD}: now of `pl.Buffered`"
    drop = RemoveArgument(module.span(call), module.span(value))
    if module.constants.fold(value) is False:
        return message, _LOOKAHEAD, [drop]
    specs = argument(call, None, "in_specs")
    if module.constants.fold(value) is not True or not isinstance(specs, ast.List | ast.Tuple):
        return message, _LOOKAHEAD, _UNKNOWN
    edits: list[Edit] = [drop]
    for spec in specs.elts:
        if not isinstance(spec, ast.Call) or argument(spec, None, "pipeline_mode") is not None:
            return message, _LOOKAHEAD, _UNKNOWN
        spelled = module.names.spell("pl.Buffered", spec)
        code = Code(f"{spelled.text}(2, use_lookahead=True)")
        edits += (SetKeyword(module.span(spec), "pipeline_mode", code), *spelled.imports)
    return message, _LOOKAHEAD, edits


def _buffered(module: Facts, call: ast.Call) -> Made | None:
    named = argument(call, None, "dtype")
    if named is None:
        return None
    message = f"`dtype=` of a buffered ref is {_BUFFERED}: now `dtype_or_type=`"
    span = module.span(call)
    edits: list[Edit] = [RenameKeyword(span, "dtype", "dtype_or_type")]
    if argument(call, None, "grid_rank") is None:
        rank = _rank(module, call.args[0] if call.args else argument(call, None, "spec"))
        if rank is None:
            return message, _BUFFERED, _UNKNOWN
        edits.append(SetKeyword(span, "grid_rank", Code(str(rank))))
    return message, _BUFFERED, edits


def _rank(module: Facts, spec: ast.expr | None) -> int | None:
    """The number of axes of a grid, by the parameters of an index map."""
    origin = module.constants.origin(spec)
    if not isinstance(origin, ast.Call):
        return None
    index_map = origin.args[1] if len(origin.args) > 1 else argument(origin, None, "index_map")
    function = module.names.definition(index_map) if index_map is not None else None
    if function is None or function.args.vararg or function.args.kwonlyargs:
        return None
    return len(function.args.posonlyargs) + len(function.args.args)


_GRIDS = ("pl.pallas_call", "pl.GridSpec", "pltpu.PrefetchScalarGridSpec")
_LOOKS: dict[str, Callable[[Facts, ast.Call], Made | None]] = {
    **dict.fromkeys(_GRIDS, _grid),
    "pl.ds": _slice,
    "pl.dslice": _slice,
    "pl.MemoryRef": _memory,
    "pltpu.emit_pipeline": _lookahead,
    **{f"pltpu.BufferedRef.{kind}": _buffered for kind in _KINDS},
}
