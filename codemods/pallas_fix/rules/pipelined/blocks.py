"""The block specs of a launch, and how they are written in a pipeline over a part of its grid."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, RemoveParameter, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.access.given import given

_BLOCKS = frozenset({"pl.BlockSpec", "plgpu.BlockSpec", "plgpu.GPUBlockSpec"})
_GLOBAL = frozenset({"plgpu.GMEM", "plgpu.MemorySpace.GMEM", "plgpu.GPUMemorySpace.GMEM"})
_WORDS = ("block_shape", "index_map", "memory_space", "transforms")


@dataclass(frozen=True, slots=True)
class Block:
    """A block spec: the expression in its list, and the call that makes it.

    Both are None where the launch has no spec, and the block is the whole array.
    """

    node: ast.expr | None = None
    call: ast.Call | None = None
    index_map: ast.Lambda | None = None
    is_global: bool = False


def blocks(module: Facts, expr: ast.expr | None, count: int, axes: int) -> list[Block] | None:
    """The blocks of `in_specs=` or `out_specs=`, or None where they are not all known."""
    if expr is None:
        return [Block()] * count
    elements = expr.elts if isinstance(expr, ast.List | ast.Tuple) else [expr]
    found = [_block(module, element, axes) for element in elements]
    known = [block for block in found if block is not None]
    return known if len(known) == len(found) == count else None


def _block(module: Facts, expr: ast.expr, axes: int) -> Block | None:
    call = module.constants.origin(expr)
    if not isinstance(call, ast.Call) or module.names.public(call.func) not in _BLOCKS:
        return None
    arguments = given(call, "block_shape", "index_map")
    if arguments is None or not arguments.keys() <= {*_WORDS}:
        return None
    space = arguments.get("memory_space")
    is_global = space is not None and module.names.public(space) in _GLOBAL
    index_map = arguments.get("index_map")
    if index_map is None:
        # Without one the block was the first of its shape; in a pipeline it is the whole array.
        return None if "block_shape" in arguments else Block(expr, call, None, is_global)
    if not isinstance(index_map, ast.Lambda) or is_global:
        return None
    a = index_map.args
    plain = not (a.posonlyargs or a.vararg or a.kwonlyargs or a.kwarg or a.defaults)
    return Block(expr, call, index_map) if plain and len(a.args) == axes else None


def own(module: Facts, found: Sequence[Block]) -> bool:
    """True if nothing but the lists of these blocks uses those that have names."""
    nodes = [block.node for block in found]
    for block in found:
        if isinstance(block.node, ast.Name):
            home = module.names.lookup(block.node.id, module.names.scope(block.node))
            for node in module.index.names.get(block.node.id, ()):
                loads = isinstance(node.ctx, ast.Load) and node not in nodes
                if loads and module.names.lookup(node.id, module.names.scope(node)) == home:
                    return False
    return True


def axis_names(found: Sequence[Block], axes: int) -> list[str]:
    """Names for the axes of a grid, by those that the first index map has for them."""
    maps = [block.index_map for block in found if block.index_map is not None]
    names = [parameter.arg for parameter in maps[0].args.args] if maps else []
    if len(set(names)) != axes or any(name.startswith("_") for name in names):
        return [f"axis{axis}" for axis in range(axes)]
    return names


def within(
    module: Facts, found: Sequence[Block], names: Sequence[str], parallel: Sequence[bool]
) -> Iterator[Edit]:
    """The edits by which index maps ask the kernel for the parallel axes."""
    for index_map in dict.fromkeys(block.index_map for block in found):
        if index_map is None:
            continue
        for parameter, name, outer in zip(index_map.args.args, names, parallel, strict=True):
            if not outer:
                continue
            yield RemoveParameter(module.span(index_map), parameter.arg)
            for node in ast.walk(index_map.body):
                if isinstance(node, ast.Name) and node.id == parameter.arg:
                    spelled = module.names.spell("lax.axis_index", node)
                    yield Replace(module.span(node), Code(f'{spelled.text}("{name}")'))
                    yield from spelled.imports
