"""The edits of one block, put in order: what is inserted where, what goes, what moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from pallas_fix.edits import (
    AddImport,
    Code,
    Edit,
    Fix,
    InsertAfter,
    InsertBefore,
    InsertComment,
    InsertFirst,
    MoveIntoScope,
    RemoveStatement,
)
from pallas_fix.rewrite import imports
from pallas_fix.rewrite.code import Line
from pallas_fix.rewrite.locate import Block, NotFound, Statement, Tree, statements_of
from pallas_fix.rewrite.statements import Plan, Scope, rebuilt
from pallas_fix.rewrite.targets import scope_at

Written = Callable[[Code], list[Line]]


class Planner:
    """Collects the edits of one block, and makes them."""

    def __init__(self, tree: Tree, block: Block) -> None:
        self._tree = tree
        self._block = block
        self._plans: dict[Statement, Plan] = {}
        self._scopes: list[Scope] = []

    def add(self, edit: Edit, written: Written) -> None:
        """Add an edit. `written` gives the statements for code, with its holes filled."""
        match edit:
            case InsertBefore(span, code):
                self._plan(self._tree.statement(span)).before.extend(written(code))
            case InsertComment(span, text):
                self._plan(self._tree.statement(span)).comments.append(text)
            case InsertAfter(span, code):
                self._plan(self._tree.statement(span)).after.extend(written(code))
            case InsertFirst(span, code):
                block, number = self._tree.first_number(self._tree.function(span))
                statements = statements_of(block)
                if number < len(statements):
                    self._plan(statements[number]).first.extend(written(code))
                else:
                    self._plan(statements[-1]).after.extend(written(code))
            case RemoveStatement(span):
                self._plan(self._tree.statement(span)).removed = True
            case MoveIntoScope(_, name, parameters, after):
                _, first, last = scope_at(self._tree, edit)
                if any(first <= other.last and other.first <= last for other in self._scopes):
                    raise NotFound("its statements move elsewhere already")
                head = cst.parse_statement(f"def {name}({', '.join(parameters)}):\n    pass")
                if isinstance(head, cst.FunctionDef):
                    self._scopes.append(Scope(first, last, head, written(after)))

    def add_imports(self, edits: Sequence[AddImport], before_line: int) -> None:
        """Add the imports that are missing, above `before_line` where they can be."""
        new = [imports.statement(edit) for edit in imports.missing(self._tree.module, edits)]
        anchor = imports.anchor(self._tree, before_line)
        if anchor is None or not new:
            return
        plan = self._plan(anchor.statement)
        if not anchor.after:
            plan.first[:0] = new
            plan.spaced = True
            return
        if anchor.alone:
            new[0] = new[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
            statements = statements_of(self._block)
            following = statements.index(anchor.statement) + 1
            if following < len(statements):
                self._plan(statements[following]).spaced = True
        plan.after[:0] = new

    def made(self, updated: Block) -> Block:
        """The block with all edits made."""
        indent = self._tree.module.default_indent
        return rebuilt(self._block, updated, self._plans, self._scopes, indent)

    def _plan(self, statement: Statement) -> Plan:
        return self._plans.setdefault(statement, Plan())


def first_line(fixes: Mapping[int, Fix]) -> int:
    """The first line that a fix with a new import edits."""
    lines = [
        edit.span.line
        for fix in fixes.values()
        if any(isinstance(edit, AddImport) for edit in fix.edits)
        for edit in fix.edits
        if not isinstance(edit, AddImport)
    ]
    return min(lines, default=1_000_000_000)
