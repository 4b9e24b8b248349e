"""The axes over which a value varies: an attribute of its type that has moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Reason
from pallas_fix.rules.changed_calls.place import Place
from pallas_fix.versions import changed

CHANGE = changed("0.10.0", fails="0.10.0")
# What gives a type (jax/_src/core.py); each of these had `vma` from jax 0.6.0 on.
_TYPES = frozenset(
    {
        "jax.typeof",
        "jax.core.get_aval",
        "jax.core.ShapedArray",
        "jax._src.core.typeof",
        "jax._src.core.get_aval",
        "jax.ShapeDtypeStruct",
        "jax.api_util.shaped_abstractify",
    }
)
_MAPS = frozenset({"map", "jax.tree.map", "jax.tree_util.tree_map", "jax.tree_map"})


def found(facts: Facts) -> Iterator[Place]:
    """Each `.vma` of what is surely, or by its name perhaps, the type of a value."""
    for node in facts.index.attributes.get("vma", ()):
        if facts.names.path(node.value) in _TYPES:
            continue
        sure = _is_type(facts, node.value)
        called = node.value.attr if isinstance(node.value, ast.Attribute) else ""
        if not (sure or called == "aval" or _is_called_aval(node.value)):
            continue
        code = Code("$type.manual_axis_type.varying", {"type": facts.span(node.value)})
        edits = (Replace(facts.span(node), code),)
        answer = edits if sure or called == "aval" else _UNKNOWN
        new = ".manual_axis_type.varying"
        yield Place(node, ".vma", new, CHANGE, answer, certain=sure)


def _is_type(facts: Facts, expr: ast.expr) -> bool:
    node = facts.constants.origin(expr)
    if isinstance(node, ast.Call):
        return facts.names.public(node.func) in _TYPES
    if not isinstance(node, ast.Name):
        return False
    return _is_one_of_many(facts, node)


def _is_one_of_many(facts: Facts, name: ast.Name) -> bool:
    """True for the `a` of `for a in map(jax.typeof, xs)`, or of such a list with a name."""
    found = facts.names.lookup(name.id, facts.names.scope(name))
    if found is None or len(found[1]) != 1:
        return False
    node: ast.AST = found[1][0].node
    while not isinstance(node, ast.For | ast.comprehension):
        if isinstance(node, ast.stmt) or node not in facts.names.parent:
            loop = _comprehension(found[0].node, name.id)
            if loop is None:
                return False
            node = loop
            break
        node = facts.names.parent[node]
    if not isinstance(node.target, ast.Name) or node.target.id != name.id:
        return False
    return _are_types(facts, node.iter)


def _comprehension(node: ast.AST, name: str) -> ast.comprehension | None:
    for loop in getattr(node, "generators", ()):
        if isinstance(loop.target, ast.Name) and loop.target.id == name:
            return loop if isinstance(loop, ast.comprehension) else None
    return None


def _are_types(facts: Facts, expr: ast.expr) -> bool:
    node = facts.constants.origin(expr)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(_is_type(facts, item) for item in node.elts)
    if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp):
        return _is_type(facts, node.elt)
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return False
    name = facts.names.public(node.func) or getattr(node.func, "id", None)
    return name in _MAPS and facts.names.public(node.args[0]) in _TYPES


def _is_called_aval(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Name) and "aval" in expr.id


_UNKNOWN = Reason(
    "receiver-not-known",
    "whether this is the type of a jax value cannot be seen",
    "if it is, write .manual_axis_type.varying",
)
