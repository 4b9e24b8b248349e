"""What the parts of GPU003 find."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pallas_fix.edits import Edit
from pallas_fix.facts.names import Function
from pallas_fix.rules.base import Reason


@dataclass(frozen=True, slots=True)
class Trouble:
    """A place that jax refuses, with the edits that repair it or the reason for none.

    `function` is the function that the edits change, if it is not the one around the place.
    """

    node: ast.AST
    message: str
    edits: tuple[Edit, ...] = ()
    reason: Reason | None = None
    certain: bool = True
    function: Function | None = None
