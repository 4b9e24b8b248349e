"""Where a file uses some names of jax, however it imports them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from pallas_fix.facts import Facts


def uses(
    module: Facts, names: Collection[str]
) -> Iterator[tuple[ast.Attribute | ast.Name, str, ast.Call | None]]:
    """The places that read one of the public names: the node, the name, and its call if any.

    A variable that holds the name is no use of it: the assignment is. Code in somebody's test for
    versions of jax is left out.
    """
    words = {name.rpartition(".")[2] for name in names}
    for node in _candidates(module, words):
        name = module.names.public(node)
        if name not in names or name is None:
            continue
        parent = module.names.parent[node]
        call = parent if isinstance(parent, ast.Call) and parent.func is node else None
        if not module.is_guarded(module.span(call or node)):
            yield node, name, call


def _candidates(module: Facts, words: Collection[str]) -> Iterator[ast.Attribute | ast.Name]:
    """The nodes that may stand for a name that ends with one of the words."""
    for word in sorted(words):
        yield from module.index.attributes.get(word, ())
    bound = {
        alias.asname or alias.name
        for statement in module.index.all(ast.ImportFrom)
        for alias in statement.names
        if alias.name in words
    }
    for name in sorted(bound):
        for node in module.index.names.get(name, ()):
            if _is_imported(module, node, words):
                yield node


def _is_imported(module: Facts, node: ast.Name, words: Collection[str]) -> bool:
    """True for a name that an import of one of the words binds."""
    bound = module.names.lookup(node.id, module.names.scope(node))
    return bound is not None and any(
        binding.kind == "import" and binding.target.rpartition(".")[2] in words
        for binding in bound[1]
    )
