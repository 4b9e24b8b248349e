"""Lists with commas: arguments, elements, parameters. Layout and comments are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

Space = cst.BaseParenthesizableWhitespace
NO_SPACE = cst.SimpleWhitespace("")
ONE_SPACE = cst.SimpleWhitespace(" ")

_AFTER: Mapping[type[cst.CSTNode], str] = {
    cst.Arg: "whitespace_after_arg",
    cst.Param: "whitespace_after_param",
    cst.ParamSlash: "whitespace_after",
}
"""Items that keep the space between them and the closing bracket themselves."""


@dataclass(slots=True)
class CommaList:
    """Items, the space before each comma, and the gaps around the items.

    There is one gap more than items: `gaps[0]` follows the opening bracket, `gaps[i]` the comma
    after item `i - 1`, and the last one stands before the closing bracket.
    """

    items: list[cst.CSTNode]
    before_commas: list[Space]
    gaps: list[Space]
    trailing: bool = field(default=False)

    def remove(self, index: int) -> None:
        """Take an item out, with the comments that speak of it alone."""
        count = len(self.items)
        before, after = self.gaps[index : index + 2]
        if count == 1:
            gap: Space = NO_SPACE
            self.trailing = False
        else:
            gap = _joined(before, after, first=index == 0, last=index == count - 1)
        self.gaps[index : index + 2] = [gap]
        del self.items[index]
        del self.before_commas[index]

    def insert(self, index: int, item: cst.CSTNode) -> None:
        """Put an item at `index`, laid out as its neighbours are."""
        if not self.items:
            opening = self.gaps[0]
            holds_comment = isinstance(opening, cst.ParenthesizedWhitespace) and _comments(opening)
            self.gaps = [opening if holds_comment else NO_SPACE, NO_SPACE]
        elif index == len(self.items):
            self.gaps[index:] = self._appended()
        else:
            self.gaps[index : index + 1] = self._split(index)
        self.items.insert(index, item)
        self.before_commas.insert(index, NO_SPACE)

    def _appended(self) -> list[Space]:
        """The gap before an item that is put at the end, and the closing one."""
        close = self.gaps[-1]
        model = self.gaps[-2]
        if len(self.items) == 1 and isinstance(model, cst.SimpleWhitespace):
            model = ONE_SPACE
        if isinstance(close, cst.ParenthesizedWhitespace) and close.first_line.comment:
            shape = model if isinstance(model, cst.ParenthesizedWhitespace) else close
            return [
                shape.with_changes(first_line=close.first_line, empty_lines=()),
                close.with_changes(first_line=_bare(close.first_line)),
            ]
        if isinstance(model, cst.ParenthesizedWhitespace):
            line = _bare(model.first_line)
            return [model.with_changes(first_line=line, empty_lines=()), close]
        return [model, close]

    def _split(self, index: int) -> list[Space]:
        """The gaps before and after an item that is put before another one."""
        gap = self.gaps[index]
        if isinstance(gap, cst.ParenthesizedWhitespace):
            return [
                gap.with_changes(empty_lines=()),
                gap.with_changes(first_line=_bare(gap.first_line)),
            ]
        model = gap if index else self.gaps[1] if len(self.items) > 1 else ONE_SPACE
        return [gap, model if isinstance(model, cst.SimpleWhitespace) else ONE_SPACE]


def read(items: Sequence[cst.CSTNode], opening: Space, closing: Space = NO_SPACE) -> CommaList:
    """The comma list of some CST items, between the spaces that belong to the brackets."""
    commas = CommaList([], [], [opening])
    for item in items:
        comma = getattr(item, "comma", None)
        kept = _AFTER.get(type(item))
        gap: Space = getattr(item, kept) if kept else NO_SPACE
        before: Space = NO_SPACE
        commas.trailing = isinstance(comma, cst.Comma)
        if isinstance(comma, cst.Comma):
            before = comma.whitespace_before
            gap = gap if _is_empty(comma.whitespace_after) else comma.whitespace_after
        commas.items.append(item)
        commas.before_commas.append(before)
        commas.gaps.append(gap)
    if _is_empty(commas.gaps[-1]):
        commas.gaps[-1] = closing
    return commas


def write(commas: CommaList) -> list[cst.CSTNode]:
    """The items with their commas.

    Items that cannot keep the space after them leave the last gap to the closing bracket.
    """
    last = len(commas.items) - 1
    written: list[cst.CSTNode] = []
    for index, item in enumerate(commas.items):
        kept = _AFTER.get(type(item))
        gap = commas.gaps[index + 1] if index < last or kept else NO_SPACE
        changes: dict[str, object] = {"comma": cst.MaybeSentinel.DEFAULT}
        if index < last or commas.trailing:
            changes["comma"] = cst.Comma(commas.before_commas[index], gap)
            gap = NO_SPACE
        if kept:
            changes[kept] = gap
        written.append(item.with_changes(**changes))
    return written


def detached(lines: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """Split the lines above something: those that stand apart, and the comment right above."""
    cut = len(lines)
    while cut and lines[cut - 1].comment is not None:
        cut -= 1
    return list(lines[:cut]), list(lines[cut:])


def _joined(before: Space, after: Space, *, first: bool, last: bool) -> Space:
    """The one gap that is left of the two around a removed item."""
    if isinstance(before, cst.ParenthesizedWhitespace):
        apart = detached(before.empty_lines)[0]
        if isinstance(after, cst.ParenthesizedWhitespace):
            # The item had its lines to itself: what stood on them goes.
            return after.with_changes(
                first_line=before.first_line, empty_lines=[*apart, *after.empty_lines]
            )
        if last and not before.first_line.comment and not any(line.comment for line in apart):
            return after
        return before
    if isinstance(after, cst.ParenthesizedWhitespace):
        if not first:
            return after
        if any(line.comment for line in after.empty_lines):
            return after.with_changes(first_line=_bare(after.first_line))
        return before
    return after if last else before


def _bare(line: cst.TrailingWhitespace) -> cst.TrailingWhitespace:
    return cst.TrailingWhitespace(newline=line.newline)


def _comments(space: cst.ParenthesizedWhitespace) -> bool:
    return space.first_line.comment is not None or any(line.comment for line in space.empty_lines)


def _is_empty(space: Space) -> bool:
    return isinstance(space, cst.SimpleWhitespace) and not space.value
