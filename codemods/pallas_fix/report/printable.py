"""Text from files and errors, made safe to print on a terminal and in a log."""

from __future__ import annotations

import re


def printable(text: str) -> str:
    """`text` with what a terminal would obey, hide or reorder written as an escape.

    That is control characters, escape sequences, bidirectional marks, line separators and bytes
    of a name that are no text. A tab becomes four spaces.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else _ESCAPES.get(char) or _escape(ord(char)) for char in text
    )


def inert(line: str) -> str:
    """`line` without what the runners of CI services would obey in a log.

    That is `::command::` at its start, after blanks too, and `##[command]` or `##vso[command]`
    anywhere (actions/runner, ActionCommand.cs). One character is written as an escape.
    """
    if "::" not in line and "##" not in line:
        return line
    return _COMMAND.sub(lambda match: f"{match[1] or ''}\\x{ord(match[0][-1]):02x}", line)


_COMMAND = re.compile(r"^(\s*):(?=:\S)|#(?=#\w*\[)")
_ESCAPES = {"\t": "    ", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
