"""Dicts that are written out: literals, calls of `dict`, and names of these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


def unpacked(module: Facts, call: ast.Call, word: str) -> Iterator[ast.expr]:
    """The values that dicts which a call unpacks have for a keyword."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            continue
        found = entries(module, keyword.value)
        yield from (value for key, value in (found.items if found else ()) if key == word)
        if isinstance(keyword.value, ast.Name):
            yield from (value for key, value in stored(module, keyword.value) if key == word)


def stored(module: Facts, name: ast.Name) -> Iterator[tuple[str | None, ast.expr]]:
    """The items that are put into the dict of a variable: `d[key] = value`, `d.update(...)`."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name() as owner, slice=key)]):
                if same(module, owner, name):
                    folded = module.constants.fold(key)
                    yield folded if isinstance(folded, str) else None, node.value
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="update")):
                if same(module, owner, name):
                    yield from ((None, value) for value in node.args)
                    yield from ((item.arg, item.value) for item in node.keywords)


def same(module: Facts, one: ast.Name, other: ast.Name) -> bool:
    """True if two names are of one variable."""
    if one.id != other.id:
        return False
    found = module.names.lookup(one.id, module.names.scope(one))
    there = module.names.lookup(other.id, module.names.scope(other))
    return found is not None and there is not None and found[0] is there[0]
