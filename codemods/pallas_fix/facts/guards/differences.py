"""Whether two pieces of code do one thing with different names or keywords of jax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.facts.names import Names

_MODULES = frozenset({"pl", "pltpu", "plgpu", "triton", "plsc"})
_SMALL = 3


def differ(names: Names, here: Sequence[ast.stmt], there: Sequence[ast.stmt]) -> bool:
    """True where two short blocks use what the other does not use.

    That is another name of the same module of Pallas, or another keyword of the same function of
    jax. Blocks that are longer, or define something, do more than stand for a version.
    """
    if max(len(here), len(there)) > _SMALL or _defines(here) or _defines(there):
        return False
    one, other = set(_used(names, here)), set(_used(names, there))
    if {path.rpartition(".")[0] for path in one - other} & {
        path.rpartition(".")[0] for path in other - one
    }:
        return True
    mine, yours = dict(_keywords(names, here)), dict(_keywords(names, there))
    shared = mine.keys() & yours.keys()
    return any(mine[name] - yours[name] and yours[name] - mine[name] for name in shared)


def stand_for(names: Names, here: Sequence[ast.stmt], there: Sequence[ast.stmt]) -> bool:
    """True where a test that says nothing itself is likely to be one for versions.

    Both blocks define the same, or `differ`, or are one statement each that uses other names or
    keywords of jax.
    """
    if not (here and there):
        return False
    if _defined(here) and _defined(here) == _defined(there):
        return True
    if differ(names, here, there):
        return True
    simple = all(isinstance(body[0], ast.Return | ast.Assign | ast.Expr) for body in (here, there))
    one, other = (_uses_of_jax(names, body) for body in (here, there))
    return len(here) == len(there) == 1 and simple and one != other


def _uses_of_jax(names: Names, body: Sequence[ast.stmt]) -> set[str]:
    """The names of jax in a block, the keywords of its functions, and what their arguments are."""
    paths = (names.path(n) or "" for n in walk(body) if isinstance(n, ast.Attribute))
    found = {path for path in paths if path.startswith("jax.")}
    calls = (node for node in walk(body) if isinstance(node, ast.Call))
    given = {
        " ".join((names.path(call.func) or "", *(type(arg).__name__ for arg in call.args)))
        for call in calls
    }
    return found.union(given, *(words for _, words in _keywords(names, body)))


def _defined(body: Sequence[ast.stmt]) -> set[str]:
    return {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _used(names: Names, body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in walk(body):
        if isinstance(node, ast.Attribute):
            name = names.public(node) or ""
            if name.partition(".")[0] in _MODULES:
                yield name


def _keywords(names: Names, body: Sequence[ast.stmt]) -> Iterator[tuple[str, set[str]]]:
    for node in walk(body):
        name = names.public(node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and name is not None:
            yield name, {keyword.arg for keyword in node.keywords if keyword.arg}


def _defines(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.FunctionDef | ast.ClassDef) for n in walk(body))


def walk(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Every node of a block."""
    for statement in body:
        yield from ast.walk(statement)
