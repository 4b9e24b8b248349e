"""One pass over a module that makes all edits of some fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

import libcst as cst

from pallas_fix.edits import (
    AddImport,
    AddParameter,
    Edit,
    Fix,
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
from pallas_fix.rewrite.arguments import (
    Display,
)
from pallas_fix.rewrite.blocks import Planner, first_line
from pallas_fix.rewrite.code import Template, requoted
from pallas_fix.rewrite.imported import Import, as_import
from pallas_fix.rewrite.imports import missing
from pallas_fix.rewrite.locate import Block, Function, IndexList, NotFound, Tree
from pallas_fix.rewrite.parens import (
    breaks_lines,
    code_of,
    fit,
    is_bracketed,
    is_closed,
    own_code,
    parenthesized,
    without_parens,
)
from pallas_fix.rewrite.rebuilt import (
    Job,
    changed_call,
    changed_display,
    changed_function,
    changed_import,
    naming,
)
from pallas_fix.rewrite.targets import (
    display_at,
    one_simple,
    scope_at,
    simple_at,
)


class Surgeon(cst.CSTTransformer):
    """Makes the edits of fixes that touch nothing in common.

    A node is rewritten once, when the pass reaches it or when a hole asks for it before that.
    """

    def __init__(self, tree: Tree, fixes: Mapping[int, Fix]) -> None:
        super().__init__()
        self._tree = tree
        self._fixes = fixes
        self._jobs: dict[cst.CSTNode, list[Job]] = {}
        self._path: set[cst.CSTNode] = {tree.module}
        self._active: set[cst.CSTNode] = set()
        self._inner: dict[cst.CSTNode, cst.CSTNode] = {}
        self._done: dict[cst.CSTNode, cst.CSTNode] = {}
        for number, fix in fixes.items():
            edits: list[Edit] = []
            for edit in fix.edits:
                if edit in edits or isinstance(edit, SetComment):
                    continue
                edits.append(edit)
                with naming(number, edit):
                    self._enter(self._target(edit), (number, edit))

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Descend only to where something is edited, and only once."""
        if node in self._done or node not in self._path:
            return False
        self._active.add(node)
        return True

    def on_leave(
        self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT
    ) -> cst.CSTNodeT | cst.RemovalSentinel | cst.FlattenSentinel[cst.CSTNodeT]:
        """Make the edits of one node, whose children are done."""
        if original_node not in self._path:
            return updated_node
        if original_node not in self._done:
            self._done[original_node] = self._made(original_node, updated_node)
            self._active.discard(original_node)
        return cast("cst.CSTNodeT", self._done[original_node])

    def _target(self, edit: Edit) -> cst.CSTNode:
        """The node at which an edit is made."""
        tree = self._tree
        match edit:
            case AddImport() | SetComment():
                return tree.module
            case Replace(span):
                indexes = tree.index_list(span)
                return indexes.subscript if indexes else tree.expression(span)
            case SetKeyword(span) | RenameKeyword(span) | NameArgument(span) | RemoveArgument(span):
                return tree.call(span)
            case RemoveElement(span):
                return display_at(tree, span)
            case RemoveParameter(span) | RenameParameter(span) | AddParameter(span):
                return tree.function(span)
            case RemoveDecorator(span):
                return tree.function(span)
            case (
                InsertBefore(span) | InsertComment(span) | InsertAfter(span) | RemoveStatement(span)
            ):
                return tree.place(tree.statement(span)).block
            case ReplaceStatement(span):
                return simple_at(tree, span)
            case SetImported(span) | SetModule(span):
                return as_import(tree.statement(span))
            case InsertFirst(span):
                return tree.first_number(tree.function(span))[0]
            case MoveIntoScope():
                return scope_at(tree, edit)[0]

    def _enter(self, node: cst.CSTNode, job: Job) -> None:
        self._jobs.setdefault(node, []).append(job)
        self._path.add(node)
        for ancestor in self._tree.ancestors(node):
            if ancestor in self._path:
                break
            self._path.add(ancestor)

    def _made(self, original: cst.CSTNode, node: cst.CSTNode) -> cst.CSTNode:
        """A node after its own edits; those of its children are made in `node`."""
        jobs = self._jobs.get(original, [])
        if isinstance(original, Block):
            return self._block(original, cast(Block, node), jobs) if jobs else node
        if isinstance(original, cst.FormattedString):
            node = requoted(cast(cst.FormattedString, node))
        elif isinstance(original, cst.Call):
            node = changed_call(self._tree, original, cast(cst.Call, node), jobs, self._value)
        elif isinstance(original, Function):
            node = changed_function(self._tree, original, cast(Function, node), jobs)
        elif isinstance(original, Display):
            node = changed_display(self._tree, original, cast(Display, node), jobs)
        elif isinstance(original, Import):
            node = changed_import(cast(Import, node), jobs)
        for number, edit in jobs:
            if isinstance(edit, ReplaceStatement):
                with naming(number, edit):
                    lines = self._template(number, edit).statements(edit.code)
                    return one_simple(lines, cast(cst.BaseSmallStatement, node))
        replacements = [(number, edit) for number, edit in jobs if isinstance(edit, Replace)]
        if not replacements:
            return node
        self._inner[original] = node
        whole: cst.CSTNode | None = None
        for number, edit in replacements:
            with naming(number, edit):
                template = self._template(number, edit)
                if self._tree.index_list(edit.span) is not None:
                    node = node.with_changes(slice=template.indexes(edit.code))
                elif whole is not None:
                    raise NotFound("another edit replaces the same code")
                elif isinstance(original, cst.BaseExpression):
                    whole = self._in_place(original, template.expression(edit.code))
                else:
                    [element] = template.indexes(edit.code)
                    whole = element.slice
        return node if whole is None else whole

    def _in_place(
        self, original: cst.BaseExpression, new: cst.BaseExpression
    ) -> cst.BaseExpression:
        """New code for the place of an old expression, in parentheses where it needs them.

        Parentheses that the file has there stay around operators, and with a comment.
        """
        own = len(own_code(original).lpar)
        left = original.lpar[: len(original.lpar) - own]
        right = original.rpar[own:]
        bare = without_parens(new)
        kept = without_parens(original).lpar[own:] or not is_closed(bare) or breaks_lines(bare)
        if left and kept:
            return bare.with_changes(lpar=[*left, *bare.lpar], rpar=[*bare.rpar, *right])
        parent = self._tree.parents[original]
        bracketed = is_bracketed(self._tree.ancestors(original))
        fitted = fit(new, parent, original, bracketed=bracketed)
        before, after = self._tree.neighbours(original)
        code = code_of(fitted)
        if (_in_word(before) and _in_word(code[0])) or (_in_word(after) and _in_word(code[-1])):
            return parenthesized(fitted)
        return fitted

    def _block(self, original: Block, block: Block, jobs: Sequence[Job]) -> Block:
        planner = Planner(self._tree, original)
        wanted: list[AddImport] = []
        for number, edit in jobs:
            with naming(number, edit):
                if isinstance(edit, AddImport):
                    wanted.append(edit)
                    missing(self._tree.module, [edit])
                else:
                    planner.add(edit, self._template(number, edit).statements)
        planner.add_imports(wanted, first_line(self._fixes))
        return planner.made(block)

    def _value(self, number: int, edit: SetKeyword) -> cst.BaseExpression:
        return self._template(number, edit).expression(edit.code)

    def _template(self, number: int, edit: Edit) -> Template:
        return Template(self._tree.module.default_indent, partial(self._part, number, edit))

    def _part(self, number: int, edit: Edit, span: Span) -> cst.CSTNode | IndexList:
        """The code of the file at `span`, after the other edits of the fix inside it.

        Where the place of the code goes with this fix, the hole holds what the fix makes of the
        code. Where the code stays, and the hole holds a copy, a `Replace` of all of it is not
        seen: so a value gets a name, by inserting `name = $value` and replacing it by `name`.
        """
        part = self._tree.part(span)
        node = part.subscript if isinstance(part, IndexList) else part
        if node not in self._done and node not in self._inner:
            if node in self._active:
                raise NotFound("the code for a hole holds the place of the edit itself")
            node.visit(self)
        kept = self._inner.get(node)
        if kept is None or (node in self._done and self._goes(number, span)):
            kept = self._done.get(node, node)
        if isinstance(part, IndexList):
            return IndexList(cst.ensure_type(kept, cst.Subscript))
        return kept

    def _goes(self, number: int, span: Span) -> bool:
        """True if the fix takes away the code around `span`."""
        for edit in self._fixes[number].edits:
            match edit:
                case Replace(around) if around != span and around.contains(span):
                    return True
                case RemoveArgument(_, around) | RemoveElement(_, around):
                    if around.contains(span):
                        return True
                case (
                    RemoveStatement(around) | ReplaceStatement(around) | RemoveDecorator(_, around)
                ):
                    if around.contains(span):
                        return True
        return False


def _in_word(character: str) -> bool:
    return character.isalnum() or character in ("_", '"', "'")
