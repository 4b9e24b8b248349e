"""Functions that are handed on: what is known of the calls that they will get."""

from __future__ import annotations

import ast

from pallas_fix.facts import Facts

_MAPS = frozenset(
    {"jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map", "jax.vmap", "jax.named_call"}
)


def calls_of(module: Facts, node: ast.expr) -> list[ast.Call] | None:
    """The calls of a function that is given another name, or has arguments bound; `partial` first.

    Those are all that the file shows; None where the function goes where they cannot be seen. A
    function that is mapped has none: it gets as many arguments as there are values.
    """
    parent = module.names.parent[node]
    if isinstance(parent, ast.Call) and parent.func is not node:
        name = module.names.qualified(parent.func)
        if name in _MAPS and parent.args and parent.args[0] is node:
            return []
        if name == "functools.partial" and parent.args and parent.args[0] is node:
            around = module.names.parent[parent]
            if isinstance(around, ast.Call) and around.func is parent:
                return [parent, around]
            later = calls_of(module, parent)
            return None if later is None else [parent, *later]
        return None
    if isinstance(parent, ast.Assign | ast.AnnAssign) and parent.value is node:
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            return _calls_by_name(module, targets[0])
    return None


def _calls_by_name(module: Facts, target: ast.Name) -> list[ast.Call] | None:
    """The calls by a name of a function; None where it is used in other ways, or bound anew."""
    scope = module.names.lookup(target.id, module.names.scope(target))
    if scope is None or len(scope[1]) != 1 or isinstance(scope[0].node, ast.ClassDef):
        return None
    found = []
    for node in ast.walk(scope[0].node):
        if not isinstance(node, ast.Name) or node.id != target.id or node is target:
            continue
        if module.names.lookup(node.id, module.names.scope(node)) != scope:
            continue
        parent = module.names.parent[node]
        if not isinstance(parent, ast.Call) or parent.func is not node:
            return None
        found.append(parent)
    return found
