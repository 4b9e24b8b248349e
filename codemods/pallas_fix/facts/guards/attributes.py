"""What a file gives to the attributes of its objects and classes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from pallas_fix.facts.names import Names

Given = ast.expr | ast.FunctionDef


def attributes(names: Names) -> Mapping[str, Sequence[Given]]:
    """The values that attributes get, by their name, and the methods that are read like them."""
    found: dict[str, list[Given]] = {}
    for node in names.parent:
        in_class = isinstance(names.parent[node], ast.ClassDef)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute):
                    found.setdefault(target.attr, []).append(node.value)
                elif in_class and isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif in_class and isinstance(node, ast.FunctionDef) and node.decorator_list:
            found.setdefault(node.name, []).append(node)
    return found
