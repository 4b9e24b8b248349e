"""The nodes of a module by what they are called, from one walk."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Index:
    """The attributes and the names of a module that are read, by their last word; its imports.

    Each list is in the order in which `ast.walk` comes by.
    """

    attributes: dict[str, list[ast.Attribute]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, list[ast.Name]] = field(default_factory=lambda: defaultdict(list))
    imports: list[ast.ImportFrom] = field(default_factory=list)

    @classmethod
    def of(cls, tree: ast.Module) -> Index:
        """Walk a module once."""
        found = cls()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                if isinstance(node.ctx, ast.Load):
                    found.attributes[node.attr].append(node)
            elif isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    found.names[node.id].append(node)
            elif isinstance(node, ast.ImportFrom):
                found.imports.append(node)
        return found
