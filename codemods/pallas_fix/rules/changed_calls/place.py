"""One place that the rule has found, and the reasons that the rooms share."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pallas_fix.edits import Edit
from pallas_fix.rules.base import Reason
from pallas_fix.versions import Change


@dataclass(frozen=True, slots=True)
class Place:
    """Where a form stands that has changed, and what makes it the new one, or why nothing can."""

    node: ast.AST
    old: str
    new: str
    change: Change
    answer: tuple[Edit, ...] | Reason
    certain: bool = True


UNPACKED = Reason(
    "arguments-unpacked",
    "the arguments are unpacked, and which of them is which cannot be seen",
    "write the arguments out, in the new form",
)
HANDED_ON = Reason(
    "handed-on",
    "the function is handed on as a value, and its callers cannot be seen",
    "hand on a function that makes the call in its new form",
)
OTHER_ARGUMENTS = Reason(
    "other-arguments",
    "the call has arguments that the new form has nothing for",
    "write the new form by hand",
)
