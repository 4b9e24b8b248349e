"""What a row of the table of arguments makes of a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, NameArgument, RemoveArgument, RenameKeyword, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.arguments.table import Argument
from pallas_fix.rules.base import Reason


@dataclass(frozen=True, slots=True)
class Place:
    """Where arguments are given: a call, and those of its arguments that count.

    `positional` leaves out the function that `functools.partial` is given. `call` may also be
    the `dict(...)` that a call unpacks.
    """

    call: ast.Call
    positional: tuple[ast.expr, ...]
    func: ast.expr


def repaired(module: Facts, place: Place, row: Argument) -> list[Edit] | Reason | None:
    """The edits, or the reason why there are none; None where the row does not concern the call."""
    keywords = {keyword.arg: keyword.value for keyword in place.call.keywords}
    span = module.span(place.call)
    if row.becomes:
        return _renamed(module, place, row)
    if row.unnamed:
        value = keywords.get(row.unnamed)
        if value is None or place.positional:
            return None
        if place.call.keywords[0].value is not value:
            return _kept(row)
        return [NameArgument(span, module.span(value), "")]
    if row.positional:
        edits = list(_named(module, place, row))
        return edits or None
    value = keywords.get(row.old)
    if value is None:
        return None
    if row.drop:
        if row.only and not _is_one_of(module, value, row.only):
            return _kept(row)
        return [RemoveArgument(span, module.span(value))]
    if row.new in keywords:
        return _twice(row)
    edits = [RenameKeyword(span, row.old, row.new)]
    if row.code:
        edits += _wrapped(module, value, row.code)
    return edits


def _renamed(module: Facts, place: Place, row: Argument) -> list[Edit] | Reason:
    names = {keyword.arg for keyword in place.call.keywords}
    if names & set(row.refuse) or None in names or len(place.positional) > len(row.positional):
        return _kept(row)
    spelled = module.names.spell(row.becomes, place.call)
    func = Replace(module.span(place.func), Code(spelled.text))
    return [func, *spelled.imports, *_named(module, place, row)]


def _named(module: Facts, place: Place, row: Argument) -> Iterator[Edit]:
    """Keywords for what is given by position, and cannot be any more."""
    given = list(zip(row.positional, place.positional, strict=False))[row.keep :]
    if any(isinstance(value, ast.Starred) for value in place.positional):
        return
    for name, value in given:
        yield NameArgument(module.span(place.call), module.span(value), name)


def _is_one_of(module: Facts, value: ast.expr, wanted: Sequence[str]) -> bool:
    """True if a value is one of some literals, or public names."""
    name = module.names.public(value)
    if name is not None and name in wanted:
        return True
    folded = module.constants.fold(value)
    literals = [w for w in wanted if not w.startswith("pl")]
    if isinstance(value, ast.List | ast.Tuple):
        return bool(value.elts) and all(_is_one_of(module, e, literals) for e in value.elts)
    if isinstance(value, ast.IfExp):
        return all(_is_one_of(module, arm, wanted) for arm in (value.body, value.orelse)) or (
            module.constants.fold(value.test) is False and _is_one_of(module, value.orelse, wanted)
        )
    if not isinstance(folded, str | int | bool | float | None):
        return False
    return any(
        ast.literal_eval(word) is folded
        or (isinstance(folded, str) and ast.literal_eval(word) == folded)
        for word in literals
        if _is_literal(word)
    )


def _is_literal(word: str) -> bool:
    return isinstance(ast.parse(word, mode="eval").body, ast.Constant)


def _wrapped(module: Facts, value: ast.expr, code: str) -> Iterator[Edit]:
    name, bracket, rest = code.partition("(")
    text = name
    if "." in name:
        spelled = module.names.spell(name, value)
        text = spelled.text
        yield from spelled.imports
    parts = {"value": module.span(value)}
    yield Replace(module.span(value), Code(f"{text}{bracket}{rest}", parts))


def _kept(row: Argument) -> Reason:
    return Reason(
        "no-successor",
        "what the argument says has no place in the new form",
        row.way_out,
    )


def _twice(row: Argument) -> Reason:
    return Reason(
        "given-twice",
        f"the call gives `{row.new}=` too",
        f"drop `{row.old}=` where the two say the same",
    )
