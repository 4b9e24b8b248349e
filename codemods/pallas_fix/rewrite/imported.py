"""Edits of import statements: other names, another module."""

from __future__ import annotations

import libcst as cst

from pallas_fix.edits import SetImported, SetModule
from pallas_fix.rewrite.commas import NO_SPACE, read, write
from pallas_fix.rewrite.locate import NotFound, Statement

Import = cst.Import | cst.ImportFrom


def as_import(statement: Statement) -> Import:
    """The statement, which must import something by name. Raises NotFound."""
    if isinstance(statement, cst.Import) or (
        isinstance(statement, cst.ImportFrom) and not isinstance(statement.names, cst.ImportStar)
    ):
        return statement
    raise NotFound("no import of names there")


def with_imported(node: Import, edit: SetImported) -> Import:
    """The statement with one name changed, or without it. Raises NotFound."""
    names = [] if isinstance(node.names, cst.ImportStar) else list(node.names)
    index = next((i for i, name in enumerate(names) if name.evaluated_name == edit.name), None)
    if index is None:
        raise NotFound(f"the statement does not import `{edit.name}`")
    if edit.new:
        names[index] = _renamed(names[index], edit.new)
        return node.with_changes(names=names)
    if len(names) == 1:
        raise NotFound(f"the statement imports nothing but `{edit.name}`")
    left = node.lpar if isinstance(node, cst.ImportFrom) else None
    right = node.rpar if isinstance(node, cst.ImportFrom) else None
    if left is None or right is None:
        commas = read(names, NO_SPACE)
        commas.remove(index)
        return node.with_changes(names=write(commas))
    commas = read(names, left.whitespace_after, right.whitespace_before)
    commas.remove(index)
    return node.with_changes(
        names=write(commas),
        lpar=left.with_changes(whitespace_after=commas.gaps[0]),
        rpar=right.with_changes(whitespace_before=commas.gaps[-1]),
    )


def with_module(node: Import, edit: SetModule) -> Import:
    """The statement that imports from another module. Raises NotFound."""
    if not isinstance(node, cst.ImportFrom):
        raise NotFound("no `from ... import` there")
    return node.with_changes(module=_dotted(edit.module), relative=())


def _renamed(name: cst.ImportAlias, new: str) -> cst.ImportAlias:
    path, _, alias = new.partition(" as ")
    changed = name.with_changes(name=_dotted(path))
    if not alias:
        return changed
    space = cst.SimpleWhitespace(" ")
    return changed.with_changes(asname=cst.AsName(cst.Name(alias), space, space))


def _dotted(path: str) -> cst.Attribute | cst.Name:
    found = cst.parse_expression(path)
    if not isinstance(found, cst.Attribute | cst.Name):
        raise NotFound(f"`{path}` is no name")
    return found
