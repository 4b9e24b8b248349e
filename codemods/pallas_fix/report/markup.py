"""Text from files and errors, made safe to stand in markdown and in HTML.

What stands in backticks becomes code, as our own messages mean it; all else is plain. Names that a
web page would turn into mentions (`@somebody`), references (`#1`) and links become code too.
"""

from __future__ import annotations

import html as escapes
import re
from collections.abc import Iterable, Iterator

from pallas_fix.report.printable import printable

_MAGIC = re.compile(r"((?:https?|ftp)://\S+|www\.\S+|@\w[\w./-]*|(?:\bGH-|#)\d+)", re.IGNORECASE)
_MARKUP = re.compile(r"[\\`*<~$]|\](?=[(\[:])|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_])")
_RUN = re.compile("`+")


def markdown(text: str) -> str:
    """`text` in one line of markdown, that a person can read as it is too."""
    return "".join(code(piece) if is_code else _escaped(piece) for is_code, piece in _pieces(text))


def cell(text: str) -> str:
    """`text` as a cell of a table in markdown, without code."""
    return _escaped(printable(text)).replace("|", "\\|")


def html(text: str) -> str:
    """`text` in one line of HTML."""
    return "".join(
        f"<code>{escapes.escape(piece)}</code>" if is_code else escapes.escape(piece)
        for is_code, piece in _pieces(text)
    )


def code(text: str) -> str:
    """`text` as code in a line of markdown, whatever it holds."""
    shown = printable(text)
    ticks = "`" * (_longest_run(shown) + 1)
    room = " " if shown[:1] in ("`", " ") or shown[-1:] in ("`", " ") else ""
    return f"{ticks}{room}{shown}{room}{ticks}" if shown else ""


def html_code(text: str) -> str:
    """`text` as code in a line of HTML."""
    return f"<code>{escapes.escape(printable(text))}</code>"


def fenced(lines: Iterable[str], language: str) -> str:
    """A block of code in markdown; the lines come without their ends."""
    body = [printable(line) for line in lines]
    ticks = "`" * max(3, max(map(_longest_run, body), default=0) + 1)
    return "\n".join([f"{ticks}{language}", *body, ticks])


def hunk_lines(hunks: Iterable[bytes], encoding: str) -> list[str]:
    """The lines of hunks as text, without their ends."""
    text = b"".join(hunks).decode(encoding, "replace")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces, of which some are code."""
    parts = printable(text).split("`")
    if len(parts) % 2 == 0 or not all(parts[1:-1]):
        parts = ["`".join(parts)]
    for number, part in enumerate(parts):
        if number % 2:
            yield True, part
        else:
            yield from ((bool(at % 2), piece) for at, piece in enumerate(_MAGIC.split(part)))


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", text)


def _longest_run(text: str) -> int:
    return max(map(len, _RUN.findall(text)), default=0)
