"""Edits of the parameters of a `def` or `lambda`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from pallas_fix.rewrite.commas import NO_SPACE, ONE_SPACE, read, write
from pallas_fix.rewrite.locate import Function

_SLASH, _STAR = "posonly_ind", "star_arg"
_LISTS = ("posonly_params", "params", "kwonly_params")


def find_parameter(function: Function, name: str) -> cst.Param | None:
    """The parameter of that name, if there is one."""
    nodes = (node for _, node in _fields(function.params))
    return next((n for n in nodes if isinstance(n, cst.Param) and n.name.value == name), None)


def with_parameters(
    function: Function,
    removed: Sequence[str],
    added: Sequence[str],
    first: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Function:
    """The function without some parameters, and then with new ones, and others renamed.

    A new parameter stands after the last positional one without a default, so that arguments
    given by position reach it, or `first`. One that the same fix removed keeps its annotation.
    """
    fields = list(_fields(function.params))
    names = [field for field, _ in fields]
    opening = function.whitespace_before_params if isinstance(function, cst.FunctionDef) else None
    commas = read([node for _, node in fields], opening or NO_SPACE)

    def drop(index: int) -> None:
        commas.remove(index)
        del names[index]

    taken: dict[str, cst.Param] = {}
    for name in removed:
        for index, node in enumerate(commas.items):
            if isinstance(node, cst.Param) and node.name.value == name:
                taken[name] = node
                drop(index)
                break
        if _SLASH in names and "posonly_params" not in names:
            drop(names.index(_SLASH))
        bare = _STAR in names and isinstance(commas.items[names.index(_STAR)], cst.ParamStar)
        if bare and "kwonly_params" not in names:
            drop(names.index(_STAR))
    for name in added:
        index = _end_of_positional(names, commas.items)
        annotation = taken[name].annotation if name in taken else None
        commas.insert(index, cst.Param(cst.Name(name), annotation, star=""))
        names.insert(index, "params")
    for name in reversed(first):
        commas.insert(0, cst.Param(cst.Name(name), star=""))
        names.insert(0, "posonly_params" if _SLASH in names else "params")
    for index, node in enumerate(commas.items):
        if isinstance(node, cst.Param) and node.name.value in (renamed or {}):
            name = (renamed or {})[node.name.value]
            commas.items[index] = node.with_changes(name=cst.Name(name))
    parameters = _from_fields(names, write(commas))
    if isinstance(function, cst.FunctionDef):
        return function.with_changes(params=parameters, whitespace_before_params=commas.gaps[0])
    space = function.whitespace_after_lambda if fields else ONE_SPACE
    return function.with_changes(
        params=parameters, whitespace_after_lambda=space if names else NO_SPACE
    )


def _fields(parameters: cst.Parameters) -> Iterator[tuple[str, cst.CSTNode]]:
    """What stands between the brackets, in order, with the field that it comes from."""
    for param in parameters.posonly_params:
        yield "posonly_params", param
    if isinstance(parameters.posonly_ind, cst.ParamSlash):
        yield _SLASH, parameters.posonly_ind
    for param in parameters.params:
        yield "params", param
    if isinstance(parameters.star_arg, (cst.Param, cst.ParamStar)):
        yield _STAR, parameters.star_arg
    for param in parameters.kwonly_params:
        yield "kwonly_params", param
    if parameters.star_kwarg is not None:
        yield "star_kwarg", parameters.star_kwarg


def _from_fields(names: Sequence[str], nodes: Sequence[cst.CSTNode]) -> cst.Parameters:
    lists: dict[str, list[cst.CSTNode]] = {name: [] for name in _LISTS}
    single: dict[str, cst.CSTNode] = {}
    for name, node in zip(names, nodes, strict=True):
        if name in lists:
            lists[name].append(node)
        else:
            single[name] = node
    return cst.Parameters().with_changes(**lists, **single)


def _end_of_positional(names: Sequence[str], nodes: Sequence[cst.CSTNode]) -> int:
    end = 0
    for index, (name, node) in enumerate(zip(names, nodes, strict=True)):
        bound = isinstance(node, cst.Param) and node.default is None
        if name == _SLASH or (name in ("posonly_params", "params") and bound):
            end = index + 1
    return end
