"""The room that performs edits: text and fixes in, text out. It alone touches libcst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from pallas_fix.edits import AddImport, Code, Fix, SetComment, Span
from pallas_fix.rewrite.comments import Comments
from pallas_fix.rewrite.conflicts import Touched, choose
from pallas_fix.rewrite.locate import Tree
from pallas_fix.rewrite.rebuilt import naming
from pallas_fix.rewrite.surgeon import Surgeon
from pallas_fix.rewrite.text import RewriteError, parse

__all__ = ["RewriteError", "Rewritten", "apply_fixes"]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new text, and which fixes (by index) are in it.

    `deferred` are those whose edits meet the edits of an applied one: they wait for the next
    pass, with new spans.
    """

    text: str
    applied: tuple[int, ...]
    deferred: tuple[int, ...]


def apply_fixes(text: str, fixes: Sequence[Fix]) -> Rewritten:
    """Make as many of the fixes as do not meet, each as a whole.

    `text` is that of a file, with its own line ends; it may begin with a BOM (U+FEFF), which
    the columns of spans do not count. What no edit touches stays as it is. Raises RewriteError
    where an edit names a node that is not there, or where libcst cannot hold the file.
    """
    if not fixes:
        return Rewritten(text, (), ())
    comments = Comments.of(text, fixes)
    if all(fix.only_comments for fix in fixes):
        every = tuple(range(len(fixes)))
        return Rewritten(comments.placed(comments.marked, every), every, ())
    parsed = parse(comments.marked)
    try:
        tree = Tree(parsed, (span for fix in fixes for span in _spans(fix)))
        touched = [_touched(number, fix, tree) for number, fix in enumerate(fixes)]
        applied, deferred = choose(touched)
        surgeon = Surgeon(tree, {number: fixes[number] for number in applied})
        made = parsed.text(parsed.module.visit(surgeon))
    except RecursionError:
        raise RewriteError("the code is nested too deeply for libcst") from None
    except (cst.CSTValidationError, cst.CSTLogicError) as error:
        raise RewriteError(f"the edits do not give a valid tree: {error}") from None
    return Rewritten(comments.placed(made, applied), tuple(applied), tuple(deferred))


def _touched(number: int, fix: Fix, tree: Tree) -> Touched:
    touched = Touched()
    for edit in fix.edits:
        with naming(number, edit):
            touched.add(edit, tree)
    return touched


def _spans(fix: Fix) -> list[Span]:
    """All spans that the edits of a fix name."""
    found: list[Span] = []
    for edit in fix.edits:
        if isinstance(edit, AddImport | SetComment):
            continue
        for name in edit.__dataclass_fields__:
            value = getattr(edit, name)
            if isinstance(value, Span):
                found.append(value)
            elif isinstance(value, Code):
                found.extend(value.parts.values())
    return found
