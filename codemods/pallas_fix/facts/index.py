"""The nodes of a module by what they are and what they are called, from one pass."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar, cast

_Node = TypeVar("_Node", bound=ast.AST)


@dataclass(frozen=True)
class Index:
    """The nodes of a module by kind; the attributes and the names that are read, by their word.

    Each list is in the order of the nodes that the index was made of.
    """

    kinds: dict[type[ast.AST], list[ast.AST]] = field(default_factory=lambda: defaultdict(list))
    attributes: dict[str, list[ast.Attribute]] = field(default_factory=lambda: defaultdict(list))
    names: dict[str, list[ast.Name]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, nodes: Iterable[ast.AST]) -> Index:
        """Go through all nodes of a module once."""
        found = cls()
        for node in nodes:
            found.kinds[type(node)].append(node)
        for attribute in found.all(ast.Attribute):
            if isinstance(attribute.ctx, ast.Load):
                found.attributes[attribute.attr].append(attribute)
        for name in found.all(ast.Name):
            if isinstance(name.ctx, ast.Load):
                found.names[name.id].append(name)
        return found

    @property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions that a `def` makes."""
        return [*self.all(ast.FunctionDef), *self.all(ast.AsyncFunctionDef)]

    @property
    def read(self) -> list[ast.Name | ast.Attribute]:
        """The names and the attributes that are read."""
        return [*chain(*self.names.values()), *chain(*self.attributes.values())]

    def all(self, kind: type[_Node]) -> list[_Node]:
        """The nodes of one class of `ast`."""
        return cast(list[_Node], self.kinds.get(kind, []))
