"""Which fixes can be made together: those whose edits touch nothing in common."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from pallas_fix.edits import (
    AddImport,
    AddParameter,
    Code,
    Edit,
    InsertAfter,
    InsertBefore,
    InsertComment,
    InsertFirst,
    MoveIntoScope,
    NameArgument,
    RemoveArgument,
    RemoveDecorator,
    RemoveElement,
    RemoveParameter,
    RemoveStatement,
    RenameKeyword,
    RenameParameter,
    Replace,
    ReplaceStatement,
    SetComment,
    SetImported,
    SetKeyword,
    SetModule,
    Span,
)
from pallas_fix.rewrite.arguments import keyword_index
from pallas_fix.rewrite.imported import as_import
from pallas_fix.rewrite.locate import Block, Statement, Tree, statements_of
from pallas_fix.rewrite.targets import (
    argument_at,
    decorator_at,
    display_at,
    element_at,
    keyword_at,
    parameter_at,
    scope_at,
    simple_at,
)


@dataclass(slots=True)
class Touched:
    """What the edits of a fix change, and what they read.

    `lists` are places that have no code of their own: the end of an argument list, the gap
    between two statements.
    """

    writes: list[Span] = field(default_factory=list)
    reads: list[Span] = field(default_factory=list)
    lists: set[Hashable] = field(default_factory=set)

    def meets(self, other: Touched) -> bool:
        """True if one of the two changes what the other changes or reads."""
        return (
            not self.lists.isdisjoint(other.lists)
            or _overlap(self.writes, other.writes)
            or _overlap(self.writes, other.reads)
            or _overlap(self.reads, other.writes)
        )

    def add(self, edit: Edit, tree: Tree) -> None:
        """Add what one edit touches. Raises NotFound where its node is not there."""
        match edit:
            case AddImport():
                pass
            case SetComment(span):
                self.writes.append(span)
            case Replace(span, code):
                if tree.index_list(span) is None:
                    tree.expression(span)
                self.writes.append(span)
                self._read(code, tree)
            case SetKeyword(span, keyword, code):
                call = tree.call(span)
                index = keyword_index(call, keyword)
                if index is None:
                    self._list(call, _end(span))
                else:
                    self.writes.append(tree.span(call.args[index].value))
                self._read(code, tree)
            case RenameKeyword(span, keyword):
                argument = keyword_at(tree.call(span), keyword)
                self.writes.append(tree.span(argument.keyword or argument))
            case RemoveArgument(span, value):
                call = tree.call(span)
                self._list(call, tree.span(call.args[argument_at(tree, call, value)]))
            case NameArgument(span, value):
                argument_at(tree, tree.call(span), value)
                self.writes.append(_start(value))
            case RemoveElement(span, element):
                display = display_at(tree, span)
                item = display.elements[element_at(tree, display, element)]
                self._list(display, tree.span(item))
            case RemoveParameter(span, name) | RenameParameter(span, name):
                function = tree.function(span)
                self._list(function, tree.span(parameter_at(function, name)))
            case AddParameter(span):
                self._list(tree.function(span), _start(span))
            case RemoveDecorator(span, decorator):
                decorator_at(tree, tree.function(span), decorator)
                self.writes.append(decorator)
            case InsertBefore(span, code) | InsertAfter(span, code):
                self._insert(tree.statement(span), isinstance(edit, InsertAfter), tree)
                self._read(code, tree)
            case InsertComment(span):
                self._insert(tree.statement(span), False, tree)
            case InsertFirst(span, code):
                block, number = tree.first_number(tree.function(span))
                self.reads.append(_start(span))
                self.lists.add((block, number))
                self._read(code, tree)
            case ReplaceStatement(span, code):
                simple_at(tree, span)
                self.writes.append(span)
                self._read(code, tree)
            case SetImported(span) | SetModule(span):
                self._list(as_import(tree.statement(span)), span)
            case RemoveStatement(span):
                statement = tree.statement(span)
                self._insert(statement, False, tree)
                self._insert(statement, True, tree)
                self.writes.append(span)
            case MoveIntoScope(_, _, _, after):
                self._move(*scope_at(tree, edit), tree)
                self._read(after, tree)

    def _list(self, node: cst.CSTNode, span: Span) -> None:
        self.lists.add(node)
        self.writes.append(span)

    def _insert(self, statement: Statement, after: bool, tree: Tree) -> None:
        place = tree.place(statement)
        self.lists.add((place.block, place.number + after))
        span = tree.span(statement)
        compound = isinstance(statement, cst.BaseCompoundStatement)
        self.reads.append(_start(span) if compound else span)

    def _move(self, block: Block, first: int, last: int, tree: Tree) -> None:
        statements = statements_of(block)
        start, end = tree.span(statements[first]), tree.span(statements[last])
        self.writes.append(Span(start.line, start.column, end.end_line, end.end_column))
        self.lists |= {(block, first), (block, last + 1)}

    def _read(self, code: Code, tree: Tree) -> None:
        for part in code.parts.values():
            tree.part(part)
            self.reads.append(part)


def choose(fixes: Iterable[Touched]) -> tuple[list[int], list[int]]:
    """The numbers of the fixes that can be made now, and of those that have to wait.

    Of two that meet, the earlier one is made.
    """
    made: list[Touched] = []
    chosen: list[int] = []
    waiting: list[int] = []
    for number, fix in enumerate(fixes):
        if any(fix.meets(other) for other in made):
            waiting.append(number)
        else:
            made.append(fix)
            chosen.append(number)
    return chosen, waiting


def _overlap(some: Sequence[Span], others: Sequence[Span]) -> bool:
    return any(
        (one.line, one.column) < (other.end_line, other.end_column)
        and (other.line, other.column) < (one.end_line, one.end_column)
        for one in some
        for other in others
    )


def _start(span: Span) -> Span:
    return Span(span.line, span.column, span.line, span.column + 1)


def _end(span: Span) -> Span:
    return Span(span.end_line, span.end_column - 1, span.end_line, span.end_column)
