"""Uses of names that shims bind, and dicts that they fill: left alone outside of the shim, too."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from pallas_fix.facts.names import Names, canonical

_MODULES = frozenset({"pl", "pltpu", "plgpu", "triton", "plsc", "fuser", "jnp", "lax", "jax"})


def of_polyfills(names: Names, polyfilled: Collection[str]) -> Iterator[ast.AST]:
    """The uses of names that the file puts onto modules: the names, and their calls."""
    if not polyfilled:
        return
    for node in names.parent:
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            if names.qualified(node) in polyfilled:
                yield from _use(names, node)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                name = canonical(f"{node.module}.{alias.name}")
                if name in polyfilled or canonical(node.module or "") in polyfilled:
                    yield node


def of_chosen(names: Names, inside: Collection[ast.AST]) -> Iterator[ast.AST]:
    """The uses of names that get their value in code that is left alone, but for modules."""
    for node in names.parent:
        if not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store) or node in inside:
            continue
        found = names.lookup(node.id, names.scope(node))
        if found is None or not any(b.node in inside or b.value in inside for b in found[1]):
            continue
        if names.qualified(node) not in _MODULES:
            yield from _use(names, node)


def of_dicts(names: Names, inside: Collection[ast.AST]) -> Iterator[ast.AST]:
    """The dicts of keyword arguments whose keys are renamed by hand, or set in a shim."""
    for node in names.parent:
        if not isinstance(node, ast.Name):
            continue
        above = names.parent[node]
        if not (_is_renamed(names, node, above) or (node in inside and _is_filled(names, above))):
            continue
        found = names.lookup(node.id, names.scope(node))
        for binding in found[1] if found else ():
            if binding.kind == "assign" and isinstance(binding.value, ast.Dict | ast.Call):
                yield binding.value


def within(guarded: Collection[ast.AST]) -> set[ast.AST]:
    """Every node in code that is left alone."""
    found: set[ast.AST] = set()
    for node in guarded:
        if node not in found:
            found.update(ast.walk(node))
    return found


def _is_renamed(names: Names, node: ast.Name, above: ast.AST) -> bool:
    """True for the dict in `kw["new"] = kw.pop("old")`."""
    if not isinstance(above, ast.Subscript) or not isinstance(above.ctx, ast.Store):
        return False
    statement = names.parent[above]
    return isinstance(statement, ast.Assign) and any(
        isinstance(part, ast.Attribute)
        and part.attr in ("pop", "get")
        and isinstance(part.value, ast.Name)
        and part.value.id == node.id
        for part in ast.walk(statement.value)
    )


def _is_filled(names: Names, above: ast.AST) -> bool:
    """True for a dict whose entries are set or taken there."""
    if isinstance(above, ast.Subscript):
        return not isinstance(above.ctx, ast.Load)
    return isinstance(above, ast.Attribute) and above.attr in ("pop", "update", "setdefault")


def _use(names: Names, node: ast.expr) -> Iterator[ast.AST]:
    """A name with what is read from it, its call, and the statement that is nothing but that."""
    yield node
    above = names.parent[node]
    while isinstance(above, ast.Attribute):
        yield above
        node, above = above, names.parent[above]
    if isinstance(above, ast.Call) and above.func is node:
        yield above
        node, above = above, names.parent[above]
        if isinstance(above, ast.Expr | ast.Assign | ast.Return) and above.value is node:
            yield above
