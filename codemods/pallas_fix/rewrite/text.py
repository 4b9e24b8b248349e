"""Text to a CST and back, with every byte that libcst alone would lose."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import libcst as cst

BOM = "\ufeff"

_MARK = "\x0c\t\x0c \x0c"
_LINE_END = r"(\r\n|\n|\r)"
_ENDS = re.compile(_LINE_END)
_INDENTED_BY_FORM_FEED = re.compile(_LINE_END + r"(\x0c+)(?=[ \t]*[^\s#])")
_TAIL = re.compile(
    r"(?:(?<=\n)|(?<=\r)(?!\n))"
    r"(?:[ \t\x0c]*(?:#[^\r\n]*)?(?:\r\n|\n|\r))*[ \t\x0c]*(?:#[^\r\n]*)?\Z"
)
_MARKED_FORM_FEED = re.compile(_MARK + r"(\x0c+)" + _LINE_END)


class RewriteError(Exception):
    """An edit that cannot be made, or a file that libcst cannot hold without loss.

    `fix` is the index of the fix whose edit it is; None where the file itself is the reason.
    """

    def __init__(self, message: str, fix: int | None = None) -> None:
        super().__init__(message)
        self.fix = fix


class _Differs(RewriteError):
    """The text that libcst prints is not the one that it read."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file as a CST, and what has to be put back around it.

    `starts` are the lines on which the statements of the module begin, with the comments above
    them, and the line on which the last one has ended. `form_feeds` says, by line, how many
    form feeds stood before the first token of that line: the positions of `ast` count them,
    those of libcst do not. `suffix` is what was cut off behind the last line of code.
    """

    module: cst.Module
    code: str
    starts: tuple[int, ...]
    prefix: str
    form_feeds: dict[int, int]
    suffix: str = ""

    def text(self, module: cst.Module) -> str:
        """The text of `module`, which was made out of this file's module."""
        return _unprotected(self.prefix, module.code) + self.suffix


def parse(text: str) -> Parsed:
    """Parse the text of a file, which may begin with a BOM.

    libcst drops a form feed before the first token of a line. It is moved to the end of the
    line before, where libcst keeps it, and goes back when the text is printed. Where libcst
    loses blanks or comments behind the last line of code, these lines are set aside and put
    back. Raises RewriteError where libcst cannot parse the text or would not print it back as
    it is.
    """
    try:
        return _parse(text)
    except _Differs:
        tail = _TAIL.search(text)
        at = tail.start() if tail else len(text)
        return replace(_parse(text[:at]), suffix=text[at:])


def _parse(text: str) -> Parsed:
    body = text.removeprefix(BOM)
    stripped = body.lstrip("\x0c")
    prefix = text[: len(text) - len(stripped)]
    form_feeds = {1: len(body) - len(stripped)} if len(body) > len(stripped) else {}
    if "\x0c" in stripped:
        body = _INDENTED_BY_FORM_FEED.sub(lambda found: _MARK + found[2] + found[1], stripped)
        form_feeds |= _count_form_feeds(stripped)
    else:
        body = stripped
    try:
        module = cst.parse_module(body)
        if body.endswith("\r"):
            module = module.with_changes(has_trailing_newline=True)
        code, starts = _printed(module)
    except cst.ParserSyntaxError as error:
        where = f"line {error.raw_line}: {error.message}"
        raise RewriteError(f"libcst cannot parse this file ({where})") from None
    except RecursionError:
        raise RewriteError("the code is nested too deeply for libcst") from None
    printed = _unprotected(prefix, code)
    if printed != text:
        line = _first_difference(text, printed)
        raise _Differs(
            f"libcst does not print this file back as it is (line {line} differs), so it cannot be "
            "edited without damage"
        )
    return Parsed(module, code, starts, prefix, form_feeds)


def _printed(module: cst.Module) -> tuple[str, tuple[int, ...]]:
    """The code of a module, and the lines on which its statements begin and the last one ends."""
    code = [module.code_for_node(line) for line in module.header]
    line = 1 + len(code)
    starts = [line]
    for statement in module.body:
        code.append(module.code_for_node(statement))
        line += len(_ENDS.findall(code[-1]))
        starts.append(line)
    code += [module.code_for_node(line) for line in module.footer]
    printed = "".join(code)
    if not module.has_trailing_newline:
        printed = re.sub(_LINE_END + r"\Z", "", printed)
    return printed or module.code, tuple(starts)


def _unprotected(prefix: str, code: str) -> str:
    return prefix + _MARKED_FORM_FEED.sub(r"\2\1", code)


def _count_form_feeds(text: str) -> dict[int, int]:
    counts: dict[int, int] = {}
    line, at = 1, 0
    for found in _INDENTED_BY_FORM_FEED.finditer(text):
        line += len(_ENDS.findall(text[at : found.end(1)]))
        at = found.end(1)
        counts[line] = len(found[2])
    return counts


def _first_difference(left: str, right: str) -> int:
    pairs = zip(_ENDS.split(left), _ENDS.split(right), strict=False)
    same = next((index for index, (a, b) in enumerate(pairs) if a != b), 0)
    return same // 2 + 1
