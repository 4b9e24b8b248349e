"""The arguments of a block spec, and their order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, NameArgument, Replace, SetComment
from pallas_fix.facts import Facts
from pallas_fix.facts.comments import comments
from pallas_fix.rules.specs.elements import BLOCKED, UNBLOCKED


@dataclass(frozen=True, slots=True)
class Spec:
    """A call that makes a block spec, or is a partial application of one."""

    module: Facts
    call: ast.Call
    arguments: tuple[ast.expr, ...]

    @property
    def shape(self) -> ast.expr | None:
        """The block shape, where the arguments are in order."""
        return self.arguments[0] if self.arguments else self._named("block_shape")

    @property
    def mode(self) -> ast.expr | None:
        """The indexing mode, by keyword or by position."""
        named = self._named("indexing_mode")
        return named or next(filter(self._is_mode, self.arguments[2:]), None)

    def ordered(self) -> tuple[list[Edit], bool] | None:
        """What puts the arguments in order, and whether that is certain; None where they are."""
        module = self.module
        span = module.span(self.call)
        if not self.arguments:
            return None
        first = self.arguments[0]
        if len(self.arguments) == 1:
            if is_map(module, first) and self._named("index_map") is None:
                return [NameArgument(span, module.span(first), "index_map")], True
            return None
        second = self.arguments[1]
        first_is_map, first_is_shape = is_map(module, first), is_shape(module, first)
        known = first_is_map or (is_shape(module, second) and not first_is_shape)
        if is_map(module, second) or (first_is_shape and not first_is_map):
            return None
        guessed = _sounds(first, "map", "index") and _sounds(second, "shape", "block")
        if not (known or guessed):
            return None
        places = module.span(first), module.span(second)
        edits: list[Edit] = [
            Replace(places[0], Code("$other", {"other": places[1]})),
            Replace(places[1], Code("$other", {"other": places[0]})),
        ]
        edits += self._swapped(first, second)
        # The third one was the memory space, and the fourth the indexing mode.
        words = ("memory_space", "indexing_mode")
        for value, word in zip(self.arguments[2:], words, strict=False):
            edits.append(NameArgument(span, module.span(value), word))
        return edits, known

    def _swapped(self, first: ast.expr, second: ast.expr) -> Iterator[Edit]:
        """What lets the comments behind two arguments on lines of their own go with them."""
        one, other = (self.module.span(value) for value in (first, second))
        if one.end_line >= other.line:
            return
        found = {where.line: (where, text) for where, text in comments(self.module.text)}
        behind = [found.get(span.end_line) for span in (one, other)]
        if behind[0] is not None and behind[1] is not None:
            yield SetComment(behind[0][0], behind[1][1])
            yield SetComment(behind[1][0], behind[0][1])

    def _named(self, word: str) -> ast.expr | None:
        return next((k.value for k in self.call.keywords if k.arg == word), None)

    def _is_mode(self, value: ast.expr) -> bool:
        origin = self.module.constants.origin(value)
        made = origin.func if isinstance(origin, ast.Call) else origin
        return made is not None and self.module.names.public(made) in BLOCKED | UNBLOCKED


def is_map(module: Facts, value: ast.expr) -> bool:
    """True for a function: a lambda, a `def` of the file, or a partial application."""
    if isinstance(value, ast.Lambda) or module.names.definition(value) is not None:
        return True
    if isinstance(value, ast.Name):
        found = module.names.lookup(value.id, module.names.scope(value))
        bindings = found[1] if found is not None else []
        return bool(bindings) and all(
            isinstance(binding.node, ast.FunctionDef)
            or (binding.value is not None and is_map(module, binding.value))
            for binding in bindings
        )
    if isinstance(value, ast.IfExp):
        return is_map(module, value.body) and is_map(module, value.orelse)
    return isinstance(value, ast.Call) and module.names.qualified(value.func) == "functools.partial"


def is_shape(module: Facts, value: ast.expr) -> bool:
    """True for a tuple or a list, and for what is named after the shape of something."""
    origin = module.constants.origin(value) or value
    match origin:
        case ast.Tuple() | ast.List() | ast.ListComp():
            return True
        case ast.BinOp(left=left, right=right):
            return is_shape(module, left) or is_shape(module, right)
        case ast.IfExp(body=body, orelse=orelse):
            return is_shape(module, body) and is_shape(module, orelse)
        case ast.Attribute(attr="shape" | "block_shape"):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Slice()):
            return True
        case ast.Call(func=ast.Name(id="tuple" | "list" as name)) as call:
            return module.names.lookup(name, module.names.scope(call)) is None
    return False


def _sounds(value: ast.expr, *words: str) -> bool:
    name = getattr(value, "id", getattr(value, "attr", ""))
    return any(word in name.lower() for word in words)
