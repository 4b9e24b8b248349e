"""Edits of a block: statements that come, go, or move into a function of their own.

Comments above a statement: the lines right above it are about it, and go when it goes; lines
that a blank line divides from it stay. New code before a statement stands above its comment.
A line `a; b`, or a suite on the line of its colon, is broken up only where code is put in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from pallas_fix.rewrite.code import Line
from pallas_fix.rewrite.commas import detached
from pallas_fix.rewrite.locate import Block, NotFound, Statement
from pallas_fix.rewrite.moving import moved_in

Lines = Sequence[cst.EmptyLine]


@dataclass(slots=True)
class Plan:
    """What happens at one statement.

    `first` stays out of a scope that begins with the statement, `before` moves into it.
    `comments` come right above it. `spaced` asks for a blank line above the statement.
    """

    first: list[Line] = field(default_factory=list)
    before: list[Line] = field(default_factory=list)
    after: list[Line] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    removed: bool = False
    spaced: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """A function that takes the statements of a block from one number to another."""

    first: int
    last: int
    head: cst.FunctionDef
    after: Sequence[Line]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A line of the new block, and the numbers of the old statements that it stands for."""

    line: Line
    first: int
    last: int
    new: bool = False
    outer: bool = False


def rebuilt(
    original: Block,
    updated: Block,
    plans: Mapping[Statement, Plan],
    scopes: Sequence[Scope],
    indent: str,
) -> Block:
    """The block after its plans and scopes. `updated` holds the same statements as `original`.

    `indent` is the default indentation of the file.
    """
    maker = _Maker(plans, _cuts(scopes))
    number = 0
    for old, line in zip(_lines(original), _lines(updated), strict=True):
        count = len(old.body) if isinstance(old, cst.SimpleStatementLine) else 1
        maker.add(old, line, number)
        number += count
    pieces = maker.pieces
    footer = [] if isinstance(updated, cst.SimpleStatementSuite) else list(updated.footer)
    if any(line.comment for line in maker.carried):
        footer = [*maker.carried, *footer]
    for scope in sorted(scopes, key=lambda scope: scope.first, reverse=True):
        takes_footer = scope.last == number - 1
        pieces = _scoped(pieces, scope, footer if takes_footer else [], indent)
        footer = [] if takes_footer else footer
    body = [piece.line for piece in pieces]
    if isinstance(updated, cst.Module):
        empty = not (body or footer or updated.header)
        ends = updated.has_trailing_newline and not empty
        return updated.with_changes(body=body, footer=footer, has_trailing_newline=ends)
    if isinstance(updated, cst.IndentedBlock):
        return updated.with_changes(body=body or [_pass()], footer=footer)
    return _suite(updated, pieces, bool(scopes))


def _suite(
    suite: cst.SimpleStatementSuite, pieces: list[_Piece], scoped: bool
) -> cst.SimpleStatementSuite | cst.IndentedBlock:
    """A suite on the line of its colon stays there as long as it is only made shorter."""
    if not pieces:
        return suite.with_changes(body=[cst.Pass()], trailing_whitespace=cst.TrailingWhitespace())
    line = pieces[0].line
    if len(pieces) == 1 and not (scoped or pieces[0].new or line.leading_lines):
        body = line.body if isinstance(line, cst.SimpleStatementLine) else suite.body
        return suite.with_changes(body=body)
    return cst.IndentedBlock([piece.line for piece in pieces])


def _lines(block: Block) -> list[Line]:
    if isinstance(block, cst.SimpleStatementSuite):
        return [cst.SimpleStatementLine(block.body, trailing_whitespace=block.trailing_whitespace)]
    return [
        line
        for line in block.body
        if isinstance(line, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    ]


def _cuts(scopes: Sequence[Scope]) -> frozenset[int]:
    """The numbers of the statements before which a line `a; b` has to be cut."""
    return frozenset(n for scope in scopes for n in (scope.first, scope.last + 1))


@dataclass(slots=True)
class _Maker:
    """Makes the pieces of a block, line by line.

    `carried` are lines that stood above a removed statement and belong to what follows.
    """

    plans: Mapping[Statement, Plan]
    cuts: frozenset[int]
    pieces: list[_Piece] = field(default_factory=list)
    carried: list[cst.EmptyLine] = field(default_factory=list)

    def add(self, old: Line, line: Line, number: int) -> None:
        """Add an old line, with what is put before and after it."""
        statements: Sequence[Statement] = (
            old.body if isinstance(old, cst.SimpleStatementLine) else [old]
        )
        plans = [self.plans.get(statement, Plan()) for statement in statements]
        apart, own = detached(line.leading_lines)
        if plans[0].spaced and not any(above.comment is None for above in line.leading_lines):
            own = [cst.EmptyLine(indent=False), *own]
        comments = [text for plan in plans for text in plan.comments]
        own = [*own, *(cst.EmptyLine(comment=cst.Comment(text)) for text in comments)]
        made = list(self._pieces(line, plans, number))
        if not made:
            self.carried = _above(self.carried, apart)
            return
        old_first = None if plans[0].removed else next(p for p in made if not p.new)
        for piece in made:
            lines = list(piece.line.leading_lines)
            if piece is made[0]:
                lines = [*apart, *lines]
                if number and not self.pieces and not self.carried:
                    lines = _without_blanks(lines)  # the first statements of the block are gone
                lines = _above(self.carried, lines)
                if old_first is None:
                    lines = [*lines, *own]
            if piece is old_first:
                lines = [*lines, *own]
            made_line = piece.line.with_changes(leading_lines=lines)
            self.pieces.append(replace(piece, line=made_line))
        self.carried = []

    def _pieces(self, line: Line, plans: Sequence[Plan], number: int) -> Iterator[_Piece]:
        """The pieces of one line, without the lines that stood above it."""
        statements = line.body if isinstance(line, cst.SimpleStatementLine) else [line]
        kept = [index for index, plan in enumerate(plans) if not plan.removed]
        run: list[int] = []
        for index, plan in enumerate(plans):
            at = number + index
            if run and (plan.first or plan.before or at in self.cuts):
                yield self._run(line, run, kept, number)
                run = []
            yield from (_Piece(new, at, at, new=True, outer=True) for new in plan.first)
            yield from (_Piece(new, at, at, new=True) for new in plan.before)
            if not plan.removed:
                run.append(index)
            if run and (plan.after or index == len(statements) - 1):
                yield self._run(line, run, kept, number)
                run = []
            after = list(plan.after)
            if after and isinstance(line, cst.FunctionDef | cst.ClassDef):
                after[0] = _spaced(after[0])
            yield from (_Piece(new, at, at, new=True) for new in after)

    def _run(self, line: Line, run: Sequence[int], kept: Sequence[int], number: int) -> _Piece:
        """The statements of `run`, which follow one another on an old line."""
        first, last = number + run[0], number + run[-1]
        if not isinstance(line, cst.SimpleStatementLine):
            return _Piece(line.with_changes(leading_lines=()), first, last)
        body = [line.body[index] for index in run]
        if run[-1] != len(line.body) - 1:
            body[-1] = body[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        end = line.trailing_whitespace if run[-1] == kept[-1] else cst.TrailingWhitespace()
        return _Piece(cst.SimpleStatementLine(body, (), end), first, last)


def _scoped(
    pieces: list[_Piece], scope: Scope, footer: list[cst.EmptyLine], indent: str
) -> list[_Piece]:
    """The pieces with those of a scope inside a function, and its call after that."""
    inside = [
        index
        for index, piece in enumerate(pieces)
        if not piece.outer and scope.first <= piece.first and piece.last <= scope.last
    ]
    if not inside:
        raise NotFound("nothing is left to move")
    begin, end = inside[0], inside[-1] + 1
    lines = [moved_in(pieces[index].line, indent) for index in range(begin, end)]
    apart, own = detached(lines[0].leading_lines)
    lines[0] = lines[0].with_changes(leading_lines=own)
    head = scope.head.with_changes(
        leading_lines=apart, body=cst.IndentedBlock(lines, footer=footer)
    )
    new = [_spaced(head) if begin else head, _spaced(scope.after[0]), *scope.after[1:]]
    made = [_Piece(line, scope.first, scope.last, new=True) for line in new]
    return [*pieces[:begin], *made, *pieces[end:]]


def _spaced(line: Line) -> Line:
    """A line with a blank one above it, as around functions inside of functions."""
    if any(above.comment is None for above in line.leading_lines):
        return line
    return line.with_changes(leading_lines=[cst.EmptyLine(indent=False), *line.leading_lines])


def _above(carried: Lines, lines: Lines) -> list[cst.EmptyLine]:
    """Lines that are carried over, and the lines of what follows: blank ones only once."""
    if any(line.comment for line in carried):
        return [*carried, *lines]
    rest = _without_blanks(lines)
    blank = lines[: len(lines) - len(rest)]
    return [*max(carried, blank, key=len), *rest]


def _without_blanks(lines: Lines) -> list[cst.EmptyLine]:
    first = next((i for i, line in enumerate(lines) if line.comment), len(lines))
    return list(lines[first:])


def _pass() -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Pass()])
