"""Unified diffs that `git apply` takes, byte for byte.

Files are compared as bytes and split at the newline character alone. Carriage returns, form
feeds, byte order marks and other encodings are content like any other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from pallas_fix.git import work_tree

_NO_NEWLINE = b"\\ No newline at end of file\n"
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def diff(name: str, before: bytes, after: bytes) -> bytes:
    """The diff of one file, or nothing where `before` equals `after`.

    `name` is its path as `name_in_diff` gives it.
    """
    if before == after:
        return b""
    old, new = _quote(f"a/{name}"), _quote(f"b/{name}")
    tab = b"\t" if b" " in old else b""
    head = b"diff --git %s %s\n--- %s%s\n+++ %s%s\n" % (old, new, old, tab, new, tab)
    return head + b"".join(hunks(before, after))


def hunks(before: bytes, after: bytes, context: int = 3) -> Iterator[bytes]:
    """The hunks between two texts: header lines, then lines with their mark, each ended."""
    old, new = _lines(before), _lines(after)
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        yield b"@@ -%s +%s @@\n" % (_range(first[1], last[2]), _range(first[3], last[4]))
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                yield from (_marked(b" ", line) for line in old[old_start:old_end])
            else:
                yield from (_marked(b"-", line) for line in old[old_start:old_end])
                yield from (_marked(b"+", line) for line in new[new_start:new_end])


def name_in_diff(path: Path) -> str:
    """How a diff names the file at `path`, with slashes.

    Links are resolved, as git refuses to patch through them. The name is relative to the git
    work tree of the current folder, as in `git diff`; to the current folder where that is in
    none; and for a file elsewhere to its own work tree.
    """
    real = os.path.realpath(path)
    here = os.path.realpath(os.curdir)
    for base in (work_tree(here) or here, work_tree(os.path.dirname(real))):
        if base is not None and real.startswith(os.path.join(base, "")):
            return os.path.relpath(real, base).replace(os.sep, "/")
    return os.path.relpath(real, here).replace(os.sep, "/")


def _lines(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    tail = lines.pop()
    return [line + b"\n" for line in lines] + ([tail] if tail else [])


def _marked(mark: bytes, line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return mark + line
    return mark + line + b"\n" + _NO_NEWLINE


def _range(start: int, end: int) -> bytes:
    length = end - start
    if length == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + 1 if length else start, length)


def _quote(name: str) -> bytes:
    """`name` as git writes it: in quotes if it holds anything but printable ASCII."""
    raw = os.fsencode(name)
    if all(32 <= byte < 127 and byte not in _ESCAPES for byte in raw):
        return raw
    quoted = "".join(
        f"\\{_ESCAPES[byte]}"
        if byte in _ESCAPES
        else chr(byte)
        if 32 <= byte < 127
        else f"\\{byte:03o}"
        for byte in raw
    )
    return f'"{quoted}"'.encode()
