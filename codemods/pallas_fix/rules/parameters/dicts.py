"""Dicts that are written out: literals, calls of `dict`, and names of these."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pallas_fix.facts import Facts


@dataclass(frozen=True, slots=True)
class Entries:
    """A dict at `node`, with its keys (None: not known) and values in order."""

    node: ast.expr
    items: tuple[tuple[str | None, ast.expr], ...]


def entries(module: Facts, value: ast.expr) -> Entries | None:
    """The entries of a dict that is written out; None for anything else.

    What is unpacked into it (`**more`) has the key None.
    """
    node = module.constants.origin(value)
    if isinstance(node, ast.Dict):
        keys = [module.constants.fold(key) if key is not None else None for key in node.keys]
        names = [key if isinstance(key, str) else None for key in keys]
        return Entries(node, tuple(zip(names, node.values, strict=True)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        if node.args or module.names.lookup("dict", module.names.scope(node)) is not None:
            return None
        return Entries(node, tuple((keyword.arg, keyword.value) for keyword in node.keywords))
    return None


def only_use(module: Facts, name: ast.Name, keyword: str) -> bool:
    """True if a variable is used for nothing but the argument `keyword=` of calls."""
    home = module.names.lookup(name.id, module.names.scope(name))
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Name) or node.id != name.id:
            continue
        if isinstance(node.ctx, ast.Store):
            continue
        if module.names.lookup(node.id, module.names.scope(node)) != home:
            continue
        around = module.names.parent[node]
        if not (isinstance(around, ast.keyword) and around.arg == keyword):
            return False
    return True
