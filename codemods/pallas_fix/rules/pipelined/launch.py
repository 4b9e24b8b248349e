"""The edits that make `plgpu.kernel` of a `pl.pallas_call` for Mosaic GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.edits import (
    Code,
    Edit,
    MoveIntoScope,
    NameArgument,
    RemoveArgument,
    RemoveElement,
    RenameKeyword,
    RenameParameter,
    Replace,
    SetKeyword,
    Span,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.launches import Launch
from pallas_fix.rules.access.given import given
from pallas_fix.rules.access.kept import comments_of_argument
from pallas_fix.rules.pipelined.blocks import Block, axis_names, blocks, own, within

_RENAMED = {"out_shape": "out_type", "scratch_shapes": "scratch_types", "name": "kernel_name"}
_WORDS = {*_RENAMED, "grid", "in_specs", "out_specs", "compiler_params", "interpret", "debug"}
_PARAMS = frozenset({"plgpu.CompilerParams", "plgpu.GPUCompilerParams"})
_SHAPES = frozenset({"jax.ShapeDtypeStruct", "plgpu.ShapeDtypeStruct"})
_PROGRAMS = frozenset({"pl.program_id", "pl.num_programs"})


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is known of a launch that can be rewritten."""

    call: ast.Call
    function: ast.FunctionDef
    arguments: dict[str, ast.expr]
    inputs: list[Block]
    outputs: list[Block]
    names: list[str]
    parallel: list[bool]
    params: ast.Call

    @property
    def blocks(self) -> list[Block]:
        return [*self.inputs, *self.outputs]


def as_kernel(module: Facts, launch: Launch) -> tuple[Edit, ...] | None:
    """The edits that make `plgpu.kernel` of a launch; None where not all of it is known."""
    parts = _parts(module, launch)
    if parts is None or not _visible(module, parts):
        return None
    edits = [*_launched(module, parts), *_gridded(module, parts)]
    if not all(block.is_global for block in parts.blocks):
        edits += _pipelined(module, parts)
    return tuple(edits)


def _parts(module: Facts, launch: Launch) -> _Parts | None:
    call, function = launch.call, _kernel(module, launch)
    arguments = given(call, "kernel", "out_shape")
    if function is None or arguments is None or launch.scratch_owner is not call:
        return None
    arguments.pop("kernel")
    axes = _axes(module, arguments.get("grid"))
    scratch = launch.scratch
    if not arguments.keys() <= _WORDS or axes is None or scratch is None:
        return None
    operands = len(function.args.args) - len(scratch)
    outputs = _outputs(module, launch, operands)
    params = module.constants.origin(arguments.get("compiler_params"))
    if outputs is None or any(slot.key for slot in scratch) or not isinstance(params, ast.Call):
        return None
    parallel = _parallel(module, params, axes, written=params is arguments["compiler_params"])
    first = blocks(module, arguments.get("in_specs"), operands - outputs, axes)
    last = blocks(module, arguments.get("out_specs"), outputs, axes)
    if parallel is None or first is None or last is None or not own(module, [*first, *last]):
        return None
    if not all(parallel) and _asks_for_programs(module, function):
        return None  # the numbers of the axes would change
    names = axis_names([*first, *last], axes)
    return _Parts(call, function, arguments, first, last, names, parallel, params)


def _kernel(module: Facts, launch: Launch) -> ast.FunctionDef | None:
    """The function that a launch runs, if it takes refs alone and nothing else uses it."""
    kernel = launch.kernel
    function = kernel if isinstance(kernel, ast.FunctionDef) else None
    if isinstance(kernel, ast.Name):
        named = module.names.definition(kernel)
        uses = [
            node
            for node in module.index.names.get(kernel.id, ())
            if module.names.definition(node) is named
        ]
        if isinstance(named, ast.FunctionDef) and not named.decorator_list and uses == [kernel]:
            function = named
    if function is None:
        return None
    a = function.args
    plain = not (a.posonlyargs or a.vararg or a.kwonlyargs or a.kwarg or a.defaults)
    return function if plain else None


def _asks_for_programs(module: Facts, function: ast.FunctionDef) -> bool:
    """True if a kernel, or a function that it names, asks which program it is."""
    reached: list[ast.AST] = [function]
    for one in reached:
        for node in ast.walk(one):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            if module.names.public(node) in _PROGRAMS:
                return True
            named = module.names.definition(node)
            if named is not None and named not in reached:
                reached.append(named)
    return False


def _outputs(module: Facts, launch: Launch, operands: int) -> int | None:
    """How many of the operands are outputs, by the shapes and by what the launch is given."""
    known: int | None = launch.outputs
    arguments = given(launch.call, "kernel", "out_shape") or {}
    shape = module.constants.origin(arguments.get("out_shape"))
    if isinstance(shape, ast.Call) and module.names.public(shape.func) not in _SHAPES:
        known = None
    around = module.names.parent[launch.call]
    if isinstance(around, ast.Call) and around.func is launch.call and not launch.decorator:
        if around.keywords or any(isinstance(value, ast.Starred) for value in around.args):
            return None
        rest = operands - len(around.args)
        return rest if rest > 0 and known in (None, rest) else None
    return known if known and known <= operands else None


def _axes(module: Facts, grid: ast.expr | None) -> int | None:
    if grid is None:
        return 0
    node = module.constants.origin(grid)
    if isinstance(node, ast.Tuple | ast.List) and node is grid:
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else len(node.elts)
    return 1 if isinstance(module.constants.fold(grid), int) else None


def _parallel(module: Facts, params: ast.Call, axes: int, written: bool) -> list[bool] | None:
    """Which axes of the grid are parallel; all of them, where the parameters do not say."""
    named = given(params)
    if module.names.public(params.func) not in _PARAMS or named is None:
        return None
    moved = named.keys() & {"dimension_semantics", "max_concurrent_steps", "delay_release"}
    if moved and (not written or "delay_release" in moved):
        return None
    if "dimension_semantics" not in named:
        return [True] * axes
    told = module.constants.fold(named["dimension_semantics"])
    if not isinstance(told, tuple) or not set(told) <= {"parallel", "sequential"}:
        return None
    return [one == "parallel" for one in told] if len(told) == axes else None


def _visible(module: Facts, parts: _Parts) -> bool:
    """True if the names in what moves into the kernel stand for the same there."""
    names = module.names
    moved = [block.node for block in parts.blocks if block.node is not None]
    moved += [e for e, outer in zip(_sizes(parts), parts.parallel, strict=True) if not outer]
    for expr in moved:
        for node in ast.walk(expr):
            if not isinstance(node, ast.Name):
                continue
            home = names.lookup(node.id, names.scope(node))
            if home is not None and any(home[0].node is part for part in ast.walk(expr)):
                continue  # a parameter of an index map
            if names.lookup(node.id, names.scopes[parts.function]) != home:
                return False
    return True


def _sizes(parts: _Parts) -> list[ast.expr]:
    grid = parts.arguments.get("grid")
    if grid is None:
        return []
    return grid.elts if isinstance(grid, ast.Tuple | ast.List) else [grid]


def _launched(module: Facts, parts: _Parts) -> Iterator[Edit]:
    """The edits of the launch itself."""
    call, span = parts.call, module.span(parts.call)
    is_partial = module.names.public(call.func) == "functools.partial"
    old = call.args[0] if is_partial else call.func
    spelled = module.names.spell("plgpu.kernel", call)
    yield Replace(module.span(old), Code(spelled.text))
    yield from spelled.imports
    if len(call.args) > 1:
        yield NameArgument(span, module.span(call.args[1]), "out_type")
    for keyword in call.keywords:
        if keyword.arg in _RENAMED:
            yield RenameKeyword(span, keyword.arg, _RENAMED[keyword.arg])
        elif keyword.arg in ("in_specs", "out_specs"):
            yield RemoveArgument(span, module.span(keyword.value))
            stay = [module.span(block.node) for block in parts.blocks if block.node is not None]
            yield from comments_of_argument(module, call, keyword.value, stay)
    for keyword in parts.params.keywords:
        if keyword.arg in ("dimension_semantics", "max_concurrent_steps"):
            yield RemoveArgument(module.span(parts.params), module.span(keyword.value))


def _gridded(module: Facts, parts: _Parts) -> Iterator[Edit]:
    """The edits that leave the parallel axes in the grid, and name them."""
    grid, span = parts.arguments.get("grid"), module.span(parts.call)
    if grid is None:
        return
    names = [name for name, outer in zip(parts.names, parts.parallel, strict=True) if outer]
    if not names:
        yield RemoveArgument(span, module.span(grid))
        return
    if not isinstance(grid, ast.Tuple | ast.List):
        yield Replace(module.span(grid), Code("($size,)", {"size": module.span(grid)}))
    for size, outer in zip(_sizes(parts), parts.parallel, strict=True):
        if not outer:
            yield RemoveElement(module.span(grid), module.span(size))
    listed = ", ".join(f'"{name}"' for name in names)
    comma = "," if len(names) == 1 else ""
    yield SetKeyword(span, "grid_names", Code(f"({listed}{comma})"))


def _pipelined(module: Facts, parts: _Parts) -> Iterator[Edit]:
    """The edits that move the kernel into the body of a pipeline."""
    function, names = parts.function, module.names
    span = module.span(function)
    refs = [parameter.arg for parameter in function.args.args[: len(parts.blocks)]]
    outer = [names.fresh(f"{ref.removesuffix('_ref')}_gmem") for ref in refs]
    for ref, new in zip(refs, outer, strict=True):
        yield RenameParameter(span, ref, new)
    yield from within(module, parts.blocks, parts.names, parts.parallel)
    holes: dict[str, Span] = {}
    spec = names.spell("plgpu.BlockSpec", function)
    yield from spec.imports

    def hole(node: ast.expr | None) -> str:
        if node is None:
            return f"{spec.text}()"
        holes[f"part{len(holes)}"] = module.span(node)
        return f"$part{len(holes) - 1}"

    sizes = zip(_sizes(parts), parts.parallel, strict=True)
    steps = [hole(size) for size, is_outer in sizes if not is_outer]
    first = ", ".join(hole(block.node) for block in parts.inputs)
    last = ", ".join(hole(block.node) for block in parts.outputs)
    grid = f"({', '.join(steps)}{',' if len(steps) == 1 else ''})"
    lines = [f"grid={grid},", f"in_specs=[{first}],", f"out_specs=[{last}],"]
    concurrent = next((k for k in parts.params.keywords if k.arg == "max_concurrent_steps"), None)
    if concurrent is not None and steps:
        lines.append(f"max_concurrent_steps={hole(concurrent.value)},")
    pipeline = names.spell("plgpu.emit_pipeline", function)
    body = names.fresh("on_blocks")
    text = "\n    ".join([f"{pipeline.text}(", f"{body},", *lines])
    code = Code(f"{text}\n)({', '.join(outer)})", holes)
    free = next(name for name in ("_", names.fresh("indices")) if name not in refs)
    yield MoveIntoScope(span, body, (free, *refs), code)
