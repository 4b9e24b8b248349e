"""Annotations that are strings: `def f(space: "pltpu.TPUMemorySpace")`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Set

from pallas_fix.facts import Facts

_WORDS = re.compile(r"[^\W\d]\w*")
_PATHS = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.\w+)+")


def words(facts: Facts) -> Mapping[ast.Constant, Set[str]]:
    """The strings that stand in annotations, each with the words in it."""
    return {node: frozenset(_WORDS.findall(text)) for node, text in _strings(facts)}


def paths(facts: Facts) -> Iterator[tuple[ast.Constant, str, str]]:
    """The dotted paths in these strings: the string, the path as it is written, its public name."""
    for node, text in _strings(facts):
        for written in dict.fromkeys(_PATHS.findall(text)):
            try:
                expression = ast.parse(written, mode="eval").body
            except SyntaxError:
                continue
            root = expression
            while isinstance(root, ast.Attribute):
                root = root.value
            if not isinstance(root, ast.Name):
                continue
            binding = facts.names.binding(root.id, facts.names.scope(node))
            if binding is not None and binding.kind == "import":
                name = facts.names.shortened(binding.target + written[len(root.id) :])
                yield node, written, name


def _strings(facts: Facts) -> Iterator[tuple[ast.Constant, str]]:
    index = facts.index
    annotations: list[ast.expr | None] = [node.annotation for node in index.all(ast.arg)]
    annotations += [node.annotation for node in index.all(ast.AnnAssign)]
    annotations += [node.returns for node in index.functions]
    for annotation in annotations:
        for part in ast.walk(annotation) if annotation is not None else ():
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part, part.value
