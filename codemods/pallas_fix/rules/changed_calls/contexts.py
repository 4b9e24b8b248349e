"""`with mesh:`, which is `with jax.set_mesh(mesh):` now."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.meshes import CONCRETE, made
from pallas_fix.rules.base import Reason
from pallas_fix.rules.changed_calls.place import Place
from pallas_fix.versions import changed

CHANGE = changed("0.7.1", warns="0.10.1")
_JIT = frozenset({"jax.jit", "jax.experimental.pjit.pjit"})


def found(facts: Facts) -> Iterator[Place]:
    """Each mesh that a `with` enters, where it surely is one."""
    for node in facts.index.all(ast.With):
        for item in node.items:
            if not _is_mesh(facts, item.context_expr):
                continue
            yield _place(facts, item)


def _place(facts: Facts, item: ast.withitem) -> Place:
    expr = item.context_expr
    new = "with jax.set_mesh(mesh):"
    if item.optional_vars is not None:
        return Place(expr, "with mesh:", new, CHANGE, _BOUND, certain=False)
    if any(_is_jitted(facts, function) for function in facts.names.enclosing(expr)):
        return Place(expr, "with mesh:", new, CHANGE, _JITTED, certain=False)
    spelling = facts.names.spell("jax.set_mesh", expr)
    code = Code(f"{spelling.text}($mesh)", {"mesh": facts.span(expr)})
    edits: tuple[Edit, ...] = (Replace(facts.span(expr), code), *spelling.imports)
    return Place(expr, "with mesh:", new, CHANGE, edits, certain=False)


def _is_mesh(facts: Facts, expr: ast.expr) -> bool:
    call = made(facts.names, facts.constants, expr)
    if call is not None:
        return facts.names.public(call.func) in CONCRETE
    if not isinstance(expr, ast.Name):
        return False
    binding = facts.names.binding(expr, facts.names.scope(expr))
    if binding is None or binding.kind != "param" or not isinstance(binding.node, ast.arg):
        return False
    annotation = binding.node.annotation
    return annotation is not None and facts.names.public(annotation) == "jax.sharding.Mesh"


def _is_jitted(facts: Facts, function: ast.AST) -> bool:
    for decorator in getattr(function, "decorator_list", ()):
        for node in ast.walk(decorator):
            if isinstance(node, ast.Name | ast.Attribute) and facts.names.path(node) in _JIT:
                return True
    return False


_BOUND = Reason(
    "bound-by-with",
    "jax.set_mesh gives its block no name for the mesh",
    "make the mesh before, and write with jax.set_mesh(mesh):",
)
_JITTED = Reason(
    "under-jit",
    "jax.set_mesh can only be entered outside of jax.jit",
    "enter the mesh around the call of the jitted function",
)
