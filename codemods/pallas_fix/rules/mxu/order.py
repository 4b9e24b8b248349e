"""What runs instead of what, and whether code may run a little later."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.values import Event, Region

_PURE = ("jnp.", "lax.", "jax.", "np.", "pl.", "math.")
_EFFECTS = frozenset({"pl.run_scoped", "pl.run_state", "lax.cond", "lax.switch", "lax.fori_loop"})
_READS = frozenset({"pltpu.matmul_pop", "pltpu.load"})
_PURE_METHODS = frozenset("astype reshape sum max min mean transpose".split())
_DEFERRED = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.GeneratorExp, ast.DictComp)


def alternatives(items: Iterable[Event | Region]) -> Iterator[Event | list[Region]]:
    """Events and regions in order; the branches of one condition, of which one runs, together."""
    group: list[Region] = []
    for item in items:
        joins = isinstance(item, Region) and item.kind == "branch"
        if group and not (joins and isinstance(item, Region) and item.node is group[0].node):
            yield group
            group = []
        if isinstance(item, Event):
            yield item
        elif joins:
            group.append(item)
        else:
            yield [item]
    if group:
        yield group


def exhaustive(group: list[Region]) -> bool:
    """True where one of these branches runs in any case: both arms of `if`, `lax.cond`."""
    return len(group) > 1 and isinstance(group[0].node, ast.If | ast.Call)


def waits(module: Facts, addition: ast.AST, read: ast.AST) -> bool:
    """True if what a statement adds is the same at a later read of the same block.

    Between them nothing may change what the added value is made of.
    """
    names = module.names
    first, last = names.statement(addition), names.statement(read)
    if not isinstance(first, ast.AugAssign) or deferred(module, read):
        return False
    block = names.block(first)
    if last not in block or not plain_calls(module, last):
        return False
    used = {node.id for node in ast.walk(first.value) if isinstance(node, ast.Name)}
    between = block[block.index(first) + 1 : block.index(last)]
    return all(_leaves_alone(module, statement, used) for statement in between)


def _leaves_alone(module: Facts, statement: ast.stmt, used: set[str]) -> bool:
    """True for `name = pure(...)` of another name, and for additions that wait themselves."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name not in used and plain_calls(module, statement)
        case ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name))):
            return name not in used and plain_calls(module, statement)
        case _:
            return False


def plain_calls(module: Facts, statement: ast.stmt) -> bool:
    """True where a statement calls nothing that could read or write a ref."""
    return all(
        _is_plain(module, node) for node in ast.walk(statement) if isinstance(node, ast.Call)
    )


def _is_plain(module: Facts, call: ast.Call) -> bool:
    func = call.func
    name = module.names.qualified(func)
    if name is not None and module.names.definition(func) is None:
        return (name.startswith(_PURE) and name not in _EFFECTS) or name in _READS
    if isinstance(func, ast.Attribute):
        return func.attr in _PURE_METHODS
    return isinstance(func, ast.Name) and not module.names.lookup(func.id, module.names.scope(func))


def deferred(module: Facts, node: ast.AST) -> bool:
    """True for an expression that its statement may not evaluate, or only later."""
    current: ast.AST | None = module.names.parent.get(node)
    while current is not None and not isinstance(current, ast.stmt):
        if isinstance(current, _DEFERRED):
            return True
        current = module.names.parent.get(current)
    return False
