"""From the spans of edits to the nodes of the CST.

Spans come from `ast`, positions from libcst. They differ: `ast` counts the parentheses of a
tuple or generator, several CST nodes share one span (an argument, its value, an index), and
an `ast` index tuple `a[i, j]` has no CST node at all. So each question names the kind of node
that it needs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from pallas_fix.edits import Span
from pallas_fix.rewrite.text import Parsed

Function = cst.FunctionDef | cst.Lambda
Block = cst.Module | cst.IndentedBlock | cst.SimpleStatementSuite
Statement = cst.BaseSmallStatement | cst.BaseCompoundStatement


class NotFound(Exception):
    """No node of the kind that an edit needs lies at its span."""


@dataclass(frozen=True, slots=True)
class Place:
    """A statement with its block, and its number among all statements of that block."""

    block: Block
    statement: Statement
    number: int


@dataclass(frozen=True, slots=True)
class IndexList:
    """The indexes of a subscript that are a tuple without parentheses: `i, j` of `a[i, j]`."""

    subscript: cst.Subscript


def statements_of(block: Block) -> list[Statement]:
    """The statements of a block, with those of `a; b` each counted."""
    found: list[Statement] = []
    for item in block.body:
        if isinstance(item, cst.SimpleStatementLine):
            found.extend(item.body)
        elif isinstance(item, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            found.append(item)
    return found


def is_docstring(statement: cst.CSTNode) -> bool:
    """True if the statement is a string that stands alone."""
    return isinstance(statement, cst.Expr) and isinstance(
        statement.value, (cst.SimpleString, cst.ConcatenatedString)
    )


class Tree:
    """The nodes of a module that lie at, or around, some spans."""

    def __init__(self, parsed: Parsed, spans: Iterable[Span]) -> None:
        self.module = parsed.module
        self.parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self._form_feeds = parsed.form_feeds
        self._code = parsed.code
        self._starts = parsed.starts
        self._positions: dict[cst.CSTNode, CodeRange] = {}
        self._lines_above: dict[cst.CSTNode, int] = {}
        self._expressions: dict[Span, cst.CSTNode] = {}
        self._arguments: dict[Span, cst.Arg] = {}
        self._indexes: dict[Span, IndexList] = {}
        self._statements: dict[tuple[int, int], Statement] = {}
        wanted = sorted(set(spans))
        self._measure(wanted)
        self._walk(parsed.module, wanted)

    def lines(self, number: int) -> range:
        """The lines of a statement of the module, by its number, with the comments above it."""
        return range(self._starts[number], self._starts[number + 1])

    def span(self, node: cst.CSTNode) -> Span:
        """Where `ast` sees the node."""
        at = self._positions[node]
        above = self._lines_above[node]
        start, end = at.start, at.end
        if isinstance(node, (cst.Tuple, cst.GeneratorExp)):
            if node.lpar:
                start = self._positions[node.lpar[-1]].start
                end = self._positions[node.rpar[0]].end
            elif isinstance(node, cst.GeneratorExp):
                argument = self.parents.get(node)
                call = self.parents.get(argument) if argument else None
                if isinstance(call, cst.Call):
                    start = self._positions[call.whitespace_after_func].end
                    end = self._positions[call].end
        line, end_line = start.line + above, end.line + above
        feeds = self._form_feeds
        return Span(
            line,
            start.column + feeds.get(line, 0),
            end_line,
            end.column + feeds.get(end_line, 0),
        )

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The nodes around a node, the nearest first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def neighbours(self, node: cst.BaseExpression) -> tuple[str, str]:
        """The characters right before and after an expression and its parentheses."""
        start, end = self._positions[node].start, self._positions[node].end
        if node.lpar:
            start = self._positions[node.lpar[0]].start
            end = self._positions[node.rpar[-1]].end
        above = self._lines_above[node] - 1
        before = self._lines[start.line + above][: start.column]
        return before[-1:], self._lines[end.line + above][end.column : end.column + 1]

    @cached_property
    def _lines(self) -> list[str]:
        return re.split("\r\n|\n|\r", self._code)

    def expression(self, span: Span) -> cst.BaseExpression | cst.Slice:
        """The expression, or slice, at `span`."""
        node = self._expressions.get(span)
        if isinstance(node, (cst.BaseExpression, cst.Slice)):
            return node
        raise NotFound("no expression there")

    def index_list(self, span: Span) -> IndexList | None:
        """The index tuple without parentheses at `span`, if any."""
        return self._indexes.get(span)

    def part(self, span: Span) -> cst.CSTNode | IndexList:
        """What a hole at `span` stands for: an expression, an argument, a statement."""
        found = self._expressions.get(span) or self._indexes.get(span) or self._arguments.get(span)
        return found if found is not None else self.statement(span)

    def call(self, span: Span) -> cst.Call:
        """The call at `span`."""
        node = self._expressions.get(span)
        if isinstance(node, cst.Call):
            return node
        raise NotFound("no call there")

    def function(self, span: Span) -> Function:
        """The `def` or `lambda` at `span`."""
        node = self._statements.get((span.line, span.column))
        if isinstance(node, cst.FunctionDef):
            return node
        found = self._expressions.get(span)
        if isinstance(found, cst.Lambda):
            return found
        raise NotFound("no function there")

    def statement(self, span: Span) -> Statement:
        """The statement at `span`. A compound one is known by its start alone."""
        node = self._statements.get((span.line, span.column))
        if isinstance(node, cst.BaseCompoundStatement) or (
            node is not None and self.span(node) == span
        ):
            return node
        raise NotFound("no statement there")

    def place(self, statement: Statement) -> Place:
        """The block that holds a statement, and where in it."""
        block: cst.CSTNode = self.parents[statement]
        if isinstance(block, cst.SimpleStatementLine):
            block = self.parents[block]
        if not isinstance(block, (cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite)):
            raise NotFound("the statement there is part of another one (`elif`)")
        return Place(block, statement, statements_of(block).index(statement))

    def first_number(self, function: Function) -> tuple[Block, int]:
        """The body of a `def`, and the number of its first statement after the docstring."""
        body = function.body
        if not isinstance(body, (cst.IndentedBlock, cst.SimpleStatementSuite)):
            raise NotFound("a lambda has no statements")
        return body, int(is_docstring(statements_of(body)[0]))

    def _measure(self, spans: Sequence[Span]) -> None:
        """Ask libcst for positions in the statements of the module that the spans lie in.

        That is the slowest step of all, so the others are left out.
        """
        numbers: set[int] = set()
        for span in spans:
            first = bisect_right(self._starts, span.line) - 1
            last = bisect_right(self._starts, span.end_line) - 1
            numbers.update(range(max(first, 0), min(last + 1, len(self.module.body))))
        for number in numbers:
            part = self.module.with_changes(
                header=(), body=[self.module.body[number]], footer=(), has_trailing_newline=True
            )
            found = MetadataWrapper(part, unsafe_skip_copy=True).resolve(PositionProvider)
            self._positions.update(found)
            self._lines_above.update(dict.fromkeys(found, self._starts[number] - 1))

    def _walk(self, node: cst.CSTNode, spans: list[Span]) -> None:
        for child in node.children:
            if child not in self._positions:
                continue
            reach = self._reach(child)
            inside = [span for span in spans if _meet(span, reach)]
            if inside:
                self.parents[child] = node
                self._record(child, inside)
                self._walk(child, inside)

    def _reach(self, node: cst.CSTNode) -> Span:
        """The span of a node with all its children, some of which its own span leaves out."""
        span = self.span(node)
        if isinstance(node, cst.Param):
            end = self.span(node.default or node.annotation or node)
            return Span(span.line, span.column, end.end_line, end.end_column)
        head = node.body[0] if isinstance(node, cst.IndentedBlock) else node
        if isinstance(head, (cst.FunctionDef, cst.ClassDef)) and head.decorators:
            first = self.span(head.decorators[0])
            return Span(first.line, first.column, span.end_line, span.end_column)
        return span

    def _record(self, node: cst.CSTNode, spans: list[Span]) -> None:
        if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            span = self.span(node)
            self._statements.setdefault((span.line, span.column), node)
        elif isinstance(node, (cst.BaseExpression, cst.Slice)):
            span = self.span(node)
            if span in spans:
                self._expressions.setdefault(span, node)
            if isinstance(node, cst.Subscript):
                self._record_index(node, spans)
        elif isinstance(node, cst.Arg) and (node.keyword or node.star):
            self._arguments[self.span(node)] = node

    def _record_index(self, node: cst.Subscript, spans: list[Span]) -> None:
        first, last = self.span(node.slice[0]), self.span(node.slice[-1])
        comma = node.slice[-1].comma
        if isinstance(comma, cst.Comma):
            last = self.span(comma)
        span = Span(first.line, first.column, last.end_line, last.end_column)
        if span in spans and (len(node.slice) > 1 or isinstance(comma, cst.Comma)):
            self._indexes[span] = IndexList(node)


def _meet(one: Span, other: Span) -> bool:
    """True if two spans have a place in common; that they touch is enough."""
    return (one.line, one.column) <= (other.end_line, other.end_column) and (
        other.line,
        other.column,
    ) <= (one.end_line, one.end_column)
