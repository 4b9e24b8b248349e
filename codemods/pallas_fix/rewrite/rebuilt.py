"""The edits of one node that is rebuilt: a call, a display, a function, an import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import libcst as cst

from pallas_fix.edits import (
    AddImport,
    AddParameter,
    Edit,
    NameArgument,
    RemoveArgument,
    RemoveDecorator,
    RemoveElement,
    RemoveParameter,
    RenameKeyword,
    RenameParameter,
    SetImported,
    SetKeyword,
    SetModule,
    Span,
)
from pallas_fix.rewrite.arguments import (
    Display,
    named_arguments,
    renamed_keyword,
    with_keyword,
    without_arguments,
    without_elements,
)
from pallas_fix.rewrite.imported import Import, with_imported, with_module
from pallas_fix.rewrite.locate import Function, NotFound, Tree
from pallas_fix.rewrite.parameters import with_parameters
from pallas_fix.rewrite.targets import argument_at, decorator_at, element_at
from pallas_fix.rewrite.text import RewriteError

Job = tuple[int, Edit]
Valued = Callable[[int, SetKeyword], cst.BaseExpression]


@contextmanager
def naming(number: int, edit: Edit) -> Iterator[None]:
    """Say in an error of which fix and edit it speaks."""
    try:
        yield
    except NotFound as error:
        span = "" if isinstance(edit, AddImport) else f" at {_shown(edit.span)}"
        raise RewriteError(f"{type(edit).__name__}{span}: {error}", number) from None


def changed_call(
    tree: Tree, original: cst.Call, call: cst.Call, jobs: Sequence[Job], value: Valued
) -> cst.Call:
    """The call after the edits of its arguments; `value` gives the code of a new one."""
    removed: list[int] = []
    keywords: dict[int, str] = {}
    for number, edit in jobs:
        with naming(number, edit):
            if isinstance(edit, RemoveArgument):
                removed.append(argument_at(tree, original, edit.value))
            elif isinstance(edit, NameArgument):
                index = argument_at(tree, original, edit.value)
                keywords[index] = edit.keyword
    call = named_arguments(call, keywords)
    call = without_arguments(call, removed)
    for _, edit in jobs:
        if isinstance(edit, RenameKeyword):
            call = renamed_keyword(call, edit.keyword, edit.new)
    for number, edit in jobs:
        if isinstance(edit, SetKeyword):
            with naming(number, edit):
                call = with_keyword(call, edit.keyword, value(number, edit))
    return call


def changed_display(
    tree: Tree, original: Display, display: Display, jobs: Sequence[Job]
) -> cst.BaseExpression:
    """The list, tuple, set or dict without the elements that go."""
    removed: list[int] = []
    for number, edit in jobs:
        if isinstance(edit, RemoveElement):
            with naming(number, edit):
                removed.append(element_at(tree, original, edit.element))
    return without_elements(display, removed) if removed else display


def changed_function(
    tree: Tree, original: Function, function: Function, jobs: Sequence[Job]
) -> Function:
    """The function after the edits of its parameters and decorators."""
    edits = [edit for _, edit in jobs]
    removed = [edit.name for edit in edits if isinstance(edit, RemoveParameter)]
    added = [edit for edit in edits if isinstance(edit, AddParameter)]
    renamed = {edit.name: edit.new for edit in edits if isinstance(edit, RenameParameter)}
    if removed or added or renamed:
        first = [edit.name for edit in added if edit.first]
        last = [edit.name for edit in added if not edit.first]
        function = with_parameters(function, removed, last, first, renamed)
    dropped = {
        decorator_at(tree, original, edit.decorator)
        for _, edit in jobs
        if isinstance(edit, RemoveDecorator)
    }
    if dropped and isinstance(function, cst.FunctionDef):
        kept = [d for i, d in enumerate(function.decorators) if i not in dropped]
        return function.with_changes(decorators=kept)
    return function


def changed_import(node: Import, jobs: Sequence[Job]) -> Import:
    """The import statement after the edits of its names and its module."""
    for number, edit in jobs:
        with naming(number, edit):
            if isinstance(edit, SetImported):
                node = with_imported(node, edit)
            elif isinstance(edit, SetModule):
                node = with_module(node, edit)
    return node


def _shown(span: Span) -> str:
    return f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
