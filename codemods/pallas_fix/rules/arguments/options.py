"""Arguments that a call unpacks from a dict of the file: `call(**options)`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pallas_fix.edits import (
    Code,
    Edit,
    RemoveArgument,
    RemoveElement,
    RemoveStatement,
    RenameKeyword,
    Replace,
)
from pallas_fix.facts import Facts
from pallas_fix.rules.parameters.dicts import same


@dataclass(frozen=True, slots=True)
class Option:
    """One item: in a call of `dict` or `update`, in a literal, or put in by `options[key] = value`.

    `alone` is false where something but calls of the one function may see the dict.
    """

    name: str
    value: ast.expr
    holder: ast.Call | ast.Dict | ast.Assign
    key: ast.expr | None = None
    alone: bool = True

    def renamed(self, module: Facts, new: str) -> Edit:
        """The edit that gives the item another name."""
        if self.key is None:
            return RenameKeyword(module.span(self.holder), self.name, new)
        return Replace(module.span(self.key), Code(f'"{new}"'))

    def removed(self, module: Facts) -> Edit:
        """The edit that takes the item out."""
        span = module.span(self.holder)
        if isinstance(self.holder, ast.Assign):
            return RemoveStatement(span)
        value = module.span(self.value)
        is_call = isinstance(self.holder, ast.Call)
        return RemoveArgument(span, value) if is_call else RemoveElement(span, value)


def options(
    module: Facts, call: ast.Call, called: Callable[[ast.Call], str | None]
) -> Iterator[Option]:
    """The items of the dicts that a call unpacks; `called` tells what a call calls.

    Nothing is told of a dict that is made or used in somebody's test for versions of jax.
    """
    for keyword in call.keywords:
        if keyword.arg is not None:
            continue
        if not isinstance(keyword.value, ast.Name):
            yield from _written(module, keyword.value, True)
            continue
        items, alone = [], True
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Name) or not same(module, node, keyword.value):
                continue
            if module.is_guarded(module.span(node)):
                return
            if isinstance(node.ctx, ast.Load):
                put = _put(module, node)
                items += put or []
                alone = alone and (put is not None or _unpacks(module, node, call, called))
        found = module.names.lookup(keyword.value.id, module.names.scope(keyword.value))
        for binding in found[1] if found else ():
            if binding.value is None:
                alone = False
            else:
                items += _written(module, binding.value, True)
        for item in items:
            yield Option(item.name, item.value, item.holder, item.key, alone)


def _written(module: Facts, value: ast.expr, alone: bool) -> Iterator[Option]:
    """The items of a dict that is written out, in all arms of a condition."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _written(module, body, alone)
            yield from _written(module, orelse, alone)
        case ast.Dict(keys=keys, values=values):
            for key, item in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield Option(key.value, item, value, key, alone)
        case ast.Call(func=ast.Name(id="dict")):
            if module.names.lookup("dict", module.names.scope(value)) is None:
                yield from _keywords(value)


def _keywords(call: ast.Call) -> Iterator[Option]:
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield Option(keyword.arg, keyword.value, call)


def _put(module: Facts, node: ast.Name) -> list[Option] | None:
    """What a use of a dict puts into it; None where it does something else."""
    around = module.names.parent[node]
    match around, module.names.parent[around]:
        case ast.Subscript(slice=key), ast.Assign(targets=[target]) as holder if target is around:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return [Option(key.value, holder.value, holder, key)]
        case ast.Attribute(attr="update"), ast.Call(func=func, args=[]) as holder if func is around:
            return list(_keywords(holder))
    return None


def _unpacks(
    module: Facts, node: ast.Name, call: ast.Call, called: Callable[[ast.Call], str | None]
) -> bool:
    around = module.names.parent[node]
    if not isinstance(around, ast.keyword) or around.arg is not None:
        return False
    other = module.names.parent[around]
    return isinstance(other, ast.Call) and called(other) == called(call)
