"""New imports: which are missing, and where they go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import get_full_name_for_node

from pallas_fix.edits import AddImport
from pallas_fix.rewrite.code import Line
from pallas_fix.rewrite.locate import NotFound, Statement, Tree, is_docstring

Import = cst.Import | cst.ImportFrom


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where imports go: after a statement, or before it; `alone` where there is no import yet."""

    statement: Statement
    after: bool
    alone: bool


def missing(module: cst.Module, wanted: Iterable[AddImport]) -> list[AddImport]:
    """The imports that the module does not have, each once.

    Raises NotFound where a name that one of them binds stands for something else.
    """
    bound = set(_bound(module.body))
    other = {name for _, name in bound} | set(_defined(module))
    found: list[AddImport] = []
    for edit in wanted:
        if edit in found or _key(edit) in bound:
            continue
        if edit.alias is None and edit.name is None:
            packages = {name.split(".")[0] for _, name in bound}
            if "." not in edit.module and edit.module in packages:
                continue
        elif _key(edit)[1] in other:
            raise NotFound(f"the name `{_key(edit)[1]}` is taken in this file")
        found.append(edit)
    return found


def statement(edit: AddImport) -> cst.SimpleStatementLine:
    """The import statement that an edit asks for."""
    if edit.name is None:
        alias = "" if edit.alias in (None, edit.module) else f" as {edit.alias}"
        text = f"import {edit.module}{alias}"
    else:
        alias = "" if edit.alias in (None, edit.name) else f" as {edit.alias}"
        text = f"from {edit.module} import {edit.name}{alias}"
    line = cst.parse_statement(text)
    if not isinstance(line, cst.SimpleStatementLine):
        raise NotFound(f"`{text}` is no import")
    return line


def anchor(tree: Tree, before_line: int) -> Anchor | None:
    """Where the first imports of a module end; None where the module has no statement.

    Only imports above `before_line`, the first line that needs the new name, count. Assignments
    between imports (`os.environ[...] = ...`) do not end the imports, definitions and loops do.
    """
    lines = [line for line in tree.module.body if isinstance(line, Line)]
    last: cst.SimpleStatementLine | None = None
    for number, line in enumerate(lines):
        if tree.lines(number).stop > before_line:
            break
        if isinstance(line, cst.SimpleStatementLine):
            if any(isinstance(small, Import) for small in line.body):
                last = line
        elif not isinstance(line, (cst.If, cst.Try, cst.With)):
            break
    if last is not None:
        future = all(isinstance(small, cst.ImportFrom) and _is_future(small) for small in last.body)
        return Anchor(last.body[-1], after=True, alone=future)
    if not lines:
        return None
    first = lines[0]
    if not isinstance(first, cst.SimpleStatementLine):
        return Anchor(first, after=False, alone=True)
    if is_docstring(first.body[0]):
        return Anchor(first.body[-1], after=True, alone=True)
    return Anchor(first.body[0], after=False, alone=True)


def _key(edit: AddImport) -> tuple[str, str]:
    """What an import makes known, and by which name: the same for `from a import b as c`
    and `import a.b as c`."""
    if edit.name is None:
        return edit.module, edit.alias or edit.module
    return f"{edit.module}.{edit.name}", edit.alias or edit.name


def _bound(lines: Sequence[cst.CSTNode]) -> Iterator[tuple[str, str]]:
    for small in _module_level(lines):
        if isinstance(small, cst.Import):
            for item in small.names:
                name = item.evaluated_name
                yield name, item.evaluated_alias or name
        elif isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
            if small.relative or small.module is None:
                module = "."
            else:
                module = get_full_name_for_node(small.module) or "."
            for item in small.names:
                name = item.evaluated_name
                yield f"{module}.{name}", item.evaluated_alias or name


def _defined(module: cst.Module) -> Iterator[str]:
    """Names of the functions, classes and variables of the module itself."""
    for small in _module_level(module.body):
        if isinstance(small, (cst.FunctionDef, cst.ClassDef)):
            yield small.name.value
        elif isinstance(small, cst.Assign):
            for target in small.targets:
                if isinstance(target.target, cst.Name):
                    yield target.target.value


def _module_level(lines: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """The statements that run on import, but for those that only type checkers see."""
    for line in lines:
        if isinstance(line, cst.SimpleStatementLine):
            yield from line.body
        elif isinstance(line, (cst.FunctionDef, cst.ClassDef)):
            yield line
        elif isinstance(line, cst.If):
            if "TYPE_CHECKING" not in (get_full_name_for_node(line.test) or ""):
                yield from _module_level(line.body.body)
            if line.orelse is not None:
                tail = line.orelse
                yield from _module_level([tail] if isinstance(tail, cst.If) else tail.body.body)
        elif isinstance(line, cst.Try):
            yield from _module_level(line.body.body)
            for handler in line.handlers:
                yield from _module_level(handler.body.body)
            for part in (line.orelse, line.finalbody):
                yield from _module_level(part.body.body if part is not None else ())
        elif isinstance(line, cst.With):
            yield from _module_level(line.body.body)
        elif isinstance(line, cst.BaseSmallStatement):
            yield line


def _is_future(node: cst.ImportFrom) -> bool:
    return isinstance(node.module, cst.Name) and node.module.value == "__future__"
