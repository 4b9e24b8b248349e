"""Edits of what stands between brackets: the arguments of calls, the elements of displays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from pallas_fix.rewrite.commas import NO_SPACE, Space, read, write
from pallas_fix.rewrite.parens import fit, parenthesized

Display = cst.List | cst.Tuple | cst.Set | cst.Dict


def keyword_index(call: cst.Call, keyword: str) -> int | None:
    """The number of the argument `keyword=...`, if the call has it."""
    for index, argument in enumerate(call.args):
        if argument.keyword is not None and argument.keyword.value == keyword:
            return index
    return None


def without_arguments(call: cst.Call, indexes: Sequence[int]) -> cst.Call:
    """The call without some of its arguments."""
    commas = read(call.args, call.whitespace_before_args)
    for index in sorted(indexes, reverse=True):
        commas.remove(index)
    return call.with_changes(whitespace_before_args=commas.gaps[0], args=write(commas))


def with_keyword(call: cst.Call, keyword: str, value: cst.BaseExpression) -> cst.Call:
    """The call with `keyword=value`: in place if it has it, else before a last `**kwargs`."""
    at = keyword_index(call, keyword)
    name = cst.Name(keyword)
    value = fit(value, cst.Arg(name), name, bracketed=True)
    if at is not None:
        args = list(call.args)
        args[at] = args[at].with_changes(value=value)
        return call.with_changes(args=args)
    args = list(call.args)
    if len(args) == 1 and isinstance(args[0].value, cst.GeneratorExp) and not args[0].value.lpar:
        args[0] = args[0].with_changes(value=parenthesized(args[0].value))
    commas = read(args, call.whitespace_before_args)
    end = len(args)
    while end and args[end - 1].star == "**":
        end -= 1
    commas.insert(end, cst.Arg(value, name, cst.AssignEqual(NO_SPACE, NO_SPACE)))
    return call.with_changes(whitespace_before_args=commas.gaps[0], args=write(commas))


def renamed_keyword(call: cst.Call, keyword: str, new: str) -> cst.Call:
    """The call with another name for one of its keyword arguments."""
    at = keyword_index(call, keyword)
    args = list(call.args)
    if at is not None:
        args[at] = args[at].with_changes(keyword=cst.Name(new))
    return call.with_changes(args=args)


def named_arguments(call: cst.Call, keywords: Mapping[int, str]) -> cst.Call:
    """The call with other keywords for some of its arguments, or with none (empty)."""
    args = list(call.args)
    for index, keyword in keywords.items():
        args[index] = args[index].with_changes(
            keyword=cst.Name(keyword) if keyword else None,
            equal=cst.AssignEqual(NO_SPACE, NO_SPACE) if keyword else cst.MaybeSentinel.DEFAULT,
        )
    return call.with_changes(args=args)


def without_elements(display: Display, indexes: Sequence[int]) -> cst.BaseExpression:
    """A list, tuple, set or dict without some of its elements; a set left empty is `set()`."""
    opening, closing = _brackets(display)
    commas = read(display.elements, opening, closing)
    for index in sorted(indexes, reverse=True):
        commas.remove(index)
    if isinstance(display, cst.Tuple):
        commas.trailing |= len(commas.items) == 1
    elements = write(commas)
    if not elements and isinstance(display, cst.Set):
        return cst.Call(cst.Name("set"), lpar=display.lpar, rpar=display.rpar)
    if not elements and isinstance(display, cst.Tuple) and not display.lpar:
        return cst.Tuple([])
    spaces = (commas.gaps[0], commas.gaps[-1]) if elements else (NO_SPACE, NO_SPACE)
    return display.with_changes(elements=elements, **_brackets_with(display, *spaces))


def _brackets(display: Display) -> tuple[Space, Space]:
    """The spaces that belong to the brackets around the elements."""
    if isinstance(display, cst.List):
        return display.lbracket.whitespace_after, display.rbracket.whitespace_before
    if isinstance(display, (cst.Set, cst.Dict)):
        return display.lbrace.whitespace_after, display.rbrace.whitespace_before
    if display.lpar:
        return display.lpar[-1].whitespace_after, display.rpar[0].whitespace_before
    return NO_SPACE, NO_SPACE


def _brackets_with(display: Display, opening: Space, closing: Space) -> dict[str, object]:
    """The fields of a display that put these spaces into its brackets."""
    if isinstance(display, cst.List):
        left: cst.CSTNode = display.lbracket.with_changes(whitespace_after=opening)
        right: cst.CSTNode = display.rbracket.with_changes(whitespace_before=closing)
        return {"lbracket": left, "rbracket": right}
    if isinstance(display, (cst.Set, cst.Dict)):
        left = display.lbrace.with_changes(whitespace_after=opening)
        right = display.rbrace.with_changes(whitespace_before=closing)
        return {"lbrace": left, "rbrace": right}
    if display.lpar:
        left = display.lpar[-1].with_changes(whitespace_after=opening)
        right = display.rpar[0].with_changes(whitespace_before=closing)
        return {"lpar": [*display.lpar[:-1], left], "rpar": [right, *display.rpar[1:]]}
    return {}
