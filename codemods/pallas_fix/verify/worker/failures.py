"""Exceptions in few words: the type, the first lines of the message, the user's line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from traceback import walk_tb

MOST_LINES = 6
MOST_CHARACTERS = 1200
MOST_READ = 1 << 20

_INTERNALS = ("The MLIR operation involved", "at location:", "Please report a bug", "=== Source")
"""Beginnings of the lines after which compilers speak of themselves."""


def describe(error: BaseException, root: str, file: str) -> dict[str, str]:
    """The `error`, `message` and `where` of an exception.

    `where` is `file:line` relative to `root`: the innermost frame in `file`, else the innermost
    one anywhere below `root`, else the first place that the message names, else empty. Paths in
    the message are relative to `root` as well.
    """
    text = _text(error)
    name, text = _called_back(text) or (type(error).__name__, text)
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    told = next((n for n, line in enumerate(lines) if n and line.startswith(_INTERNALS)), None)
    message = "\n".join(lines[:told][:MOST_LINES])[:MOST_CHARACTERS]
    return {
        "error": name,
        "message": message.replace(root + os.sep, ""),
        "where": _where(error, root, file) or _named(text, root),
    }


_RAISED = re.compile(
    r"^(?:\w+\.)*(\w+(?:Error|Exception|Interrupt)): (.*)", re.MULTILINE | re.DOTALL
)


def _called_back(text: str) -> tuple[str, str] | None:
    """The error that ended a callback, where XLA has only the text of its traceback."""
    head, _, traceback = text.partition("Traceback (most recent call last):\n")
    raised = _RAISED.search(traceback) if "callback" in head else None
    return (raised[1], raised[2]) if raised else None


def _text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the code called sys.exit({'' if error.code is None else repr(error.code)})"
    if isinstance(error, MemoryError):
        return "the memory limit of the worker is used up"
    try:
        return str(error)[:MOST_READ]
    except BaseException:
        return "the message of this error cannot be printed"


def _where(error: BaseException, root: str, file: str) -> str:
    target = os.path.join(root, file)
    places = list(_places(error))
    for path, line in reversed(places):
        if path == target:
            return f"{file}:{line}"
    for path, line in reversed(places):
        if path.startswith(root + os.sep):
            return f"{os.path.relpath(path, root)}:{line}"
    return ""


def _named(text: str, root: str) -> str:
    """The first place below `root` in a message, which MLIR writes as `"path":line:column`."""
    place = re.search(re.escape(root + os.sep) + r'([^"\n]+)":(\d+)', text)
    return f"{place[1]}:{place[2]}" if place else ""


def _places(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yield file and line of the frames of an error and of its causes, outermost first."""
    chain: list[BaseException] = []
    seen: BaseException | None = error
    while seen is not None and seen not in chain:
        chain.append(seen)
        seen = seen.__cause__ or seen.__context__
    for one in reversed(chain):
        for frame, line in walk_tb(one.__traceback__):
            yield frame.f_code.co_filename, line
        if isinstance(one, SyntaxError) and one.filename and one.lineno:
            yield one.filename, one.lineno
