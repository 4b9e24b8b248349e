"""Text from files and errors, made safe to print on a terminal."""

from __future__ import annotations


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


_ESCAPES = {"\t": "    ", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
