"""Code elsewhere that belongs to a shim: what only one arm calls, and annotations beside it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from pallas_fix.facts.guards.words import is_of_an_age
from pallas_fix.facts.names import Names

_SMALL = 5
_CHOICES = (ast.If, ast.IfExp, ast.Try, ast.Dict)
_Def = ast.FunctionDef | ast.ClassDef


def helpers(names: Names, inside: Collection[ast.AST]) -> Iterator[ast.AST]:
    """The functions and classes that are named in one arm of a shim and nowhere else.

    Only short ones, and those that are called after an age: what else is run for some versions
    only is likely to be everything that the file has, where they are the ones that it needs.
    """
    defined = {
        node.name: node
        for node in names.parent
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and _is_helper(node)
    }
    uses: dict[_Def, list[ast.Name]] = {}
    for node in names.parent:
        if isinstance(node, ast.Name) and node.id in defined and isinstance(node.ctx, ast.Load):
            binding = names.binding(node, names.scope(node))
            if binding is not None and isinstance(binding.node, ast.FunctionDef | ast.ClassDef):
                uses.setdefault(binding.node, []).append(node)
    for definition, named in uses.items():
        if all(name in inside for name in named) and _is_one_arm(names, named):
            yield definition


def lazy_annotations(names: Names, guarded: Collection[ast.AST]) -> Iterator[ast.AST]:
    """The annotations, never evaluated, of the functions that hold a shim."""
    lazy = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in names.tree.body
    )
    functions = {next(names.enclosing(node), None) for node in guarded}
    for function in functions:
        if isinstance(function, ast.FunctionDef):
            for part in (*ast.walk(function.args), function):
                word = getattr(part, "annotation", None) or getattr(part, "returns", None)
                if isinstance(word, ast.Constant) or (lazy and word is not None):
                    yield word


def _is_helper(node: _Def) -> bool:
    if is_of_an_age(node.name):
        return True
    documented = ast.get_docstring(node) is not None
    statements = sum(isinstance(part, ast.stmt) for part in ast.walk(node))
    return statements - documented <= _SMALL


def _is_one_arm(names: Names, uses: list[ast.Name]) -> bool:
    """True where each use stands in an arm of a test, and no two in both arms of one."""
    arms: dict[ast.AST, set[str]] = {}
    for use in uses:
        here: ast.AST = use
        while here in names.parent and not isinstance(names.parent[here], _CHOICES):
            here = names.parent[here]
        above = names.parent.get(here)
        if above is None or isinstance(above, ast.Try):
            return False
        arms.setdefault(above, set()).add(_field(above, here))
    return all(len(fields) == 1 for fields in arms.values())


def _field(above: ast.AST, here: ast.AST) -> str:
    for field, value in ast.iter_fields(above):
        if value is here or (isinstance(value, list) and here in value):
            return field
    return ""
