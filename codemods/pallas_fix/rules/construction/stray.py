"""Invented names of the accumulator space that allocate nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import is_invented
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.trouble import Trouble


def stray(module: Facts, known: Sequence[ast.expr]) -> Iterator[Trouble]:
    """Invented names that are none of the `known` ones, nor what those are defined by."""
    defined = {bound_by(module, name) for name in known if isinstance(name, ast.Name)}
    for node in module.index.all(ast.Attribute):
        if node in known or not is_invented(module.names.qualified(node)):
            continue
        parent = module.names.parent[node]
        longer = is_invented(module.names.qualified(parent))
        if longer or parent in defined or _in_spec(module, parent):
            continue
        reason = Reason(
            "unknown-use",
            "it is not clear which accumulator is meant",
            "the space of the accumulators of one MXU is pltpu.ACC(mxu_index), and their class is "
            "pltpu.ACC",
        )
        yield Trouble(node, f"jax has no `{module.source(node)}`", reason)


def bound_by(module: Facts, name: ast.Name) -> ast.AST | None:
    """The statement that gives a name its only meaning."""
    binding = module.names.binding(name, module.names.scope(name))
    return binding.node if binding is not None else None


def _in_spec(module: Facts, parent: ast.AST) -> bool:
    """True for the memory space of a block spec, which goes away as a whole."""
    call = module.names.parent.get(parent)
    spec = isinstance(call, ast.Call) and module.names.qualified(call.func) == "pl.BlockSpec"
    return spec and isinstance(parent, ast.keyword) and parent.arg == "memory_space"
