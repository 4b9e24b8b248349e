"""What a row of the table of arguments makes of a call."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, NameArgument, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.scopes import defaults
from pallas_fix.rules.access.given import is_none
from pallas_fix.rules.access.kept import kept_comments
from pallas_fix.rules.arguments.options import Option
from pallas_fix.rules.arguments.table import Argument
from pallas_fix.rules.base import Reason


@dataclass(frozen=True, slots=True)
class Place:
    """A call, and the arguments that its function gets by position.

    These leave out the function that `functools.partial` is given, and have those that the
    call of a partial application got before.
    """

    call: ast.Call
    positional: tuple[ast.expr, ...]
    func: ast.expr
    bound: bool = False


def repaired(module: Facts, place: Place, row: Argument) -> list[Edit] | Reason | None:
    """The edits, or the reason why there are none; None where the row does not concern the call."""
    if row.becomes:
        return None if place.bound else _renamed(module, place, row)
    if row.unnamed:
        return _unnamed(module, place, row)
    if row.positional:
        return list(_named(module, place, row)) or None
    keywords = {keyword.arg: keyword.value for keyword in place.call.keywords}
    value = keywords.get(row.old)
    if value is None:
        return None
    return repaired_option(module, Option(row.old, value, place.call), row, keywords.keys())


def repaired_option(
    module: Facts, option: Option, row: Argument, given: Collection[str | None]
) -> list[Edit] | Reason:
    """The same for an argument that has the old name of a row, beside others."""
    if not option.alone:
        return _SHARED
    if row.drop:
        if row.only and not _is_one_of(module, option.value, row.only):
            return _kept(row)
        return [option.removed(module)]
    if row.new in given:
        return _twice(row)
    edits = [option.renamed(module, row.new)]
    if row.code:
        edits += _wrapped(module, option.value, row.code)
    return edits


def _unnamed(module: Facts, place: Place, row: Argument) -> list[Edit] | Reason | None:
    """What gives an argument by position that has lost its keyword."""
    call = place.call
    value = next((k.value for k in call.keywords if k.arg == row.unnamed), None)
    if value is None or place.positional:
        return None
    span = module.span(call)
    if call.keywords[0].value is value:
        return [NameArgument(span, module.span(value), "")]
    if any(keyword.arg is None for keyword in call.keywords):
        return _UNPACKED
    parts = {"func": module.span(call.func), "first": module.span(value)}
    parts |= {f"v_{k.arg}": module.span(k.value) for k in call.keywords if k.value is not value}
    rest = [f"{k.arg}=$v_{k.arg}" for k in call.keywords if k.value is not value]
    code = Code(f"$func({', '.join(['$first', *rest])})", parts)
    return [Replace(span, code), *kept_comments(module, call, parts.values())]


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
    own = set(place.call.args)
    for name, value in given:
        if value not in own:
            continue
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


def _wrapped(module: Facts, value: ast.expr, code: str, *, tested: bool = False) -> Iterator[Edit]:
    """What puts a value into the new form; `None` says nothing, and stays."""
    if is_none(value):
        return
    if isinstance(value, ast.IfExp) and (is_none(value.body) or is_none(value.orelse)):
        yield from _wrapped(module, value.body, code, tested=True)
        yield from _wrapped(module, value.orelse, code, tested=True)
        return
    name, bracket, rest = code.partition("(")
    text = name
    if "." in name:
        spelled = module.names.spell(name, value)
        text = spelled.text
        yield from spelled.imports
    parts = {"value": module.span(value)}
    whole = f"{text}{bracket}{rest}"
    if not tested and _may_be_none(module, value):
        whole = f"None if $value is None else {whole}"
    yield Replace(module.span(value), Code(whole, parts))


def _may_be_none(module: Facts, value: ast.expr) -> bool:
    """True for a variable or a parameter that somewhere is given `None`."""
    if not isinstance(value, ast.Name):
        return False
    found = module.names.lookup(value.id, module.names.scope(value))
    for binding in found[1] if found is not None else ():
        given = binding.value
        if binding.kind == "param" and isinstance(binding.node, ast.arg):
            arguments = module.names.parent[binding.node]
            assert isinstance(arguments, ast.arguments)
            given = defaults(arguments).get(binding.node)
        arms = [given.body, given.orelse] if isinstance(given, ast.IfExp) else [given]
        if any(arm is not None and is_none(arm) for arm in arms):
            return True
    return False


_UNPACKED = Reason(
    "options-unpacked",
    "what is unpacked into the call may give the argument too",
    "give it by position, before the others",
)
_SHARED = Reason(
    "options-are-shared",
    "the dict that is unpacked there is used for something else too",
    "give the arguments in the call, or make a dict of its own for it",
)


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
