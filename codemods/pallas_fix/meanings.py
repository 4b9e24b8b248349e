"""What messages of jax mean: those of the table, and those that name a name that has changed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from pallas_fix.facts.paths import short
from pallas_fix.rules.renames.table import TABLES, Row, modules, newest, rows
from pallas_fix.versions import NEWEST

_RENAMED = "API001"
_MODULE = re.compile(r"module '(jax[\w.]*)' has no attribute '(\w+)'")
_IMPORT = re.compile(r"cannot import name '(\w+)' from (?:\w+ \w+ module )?'(jax[\w.]*)'")
_MISSING = re.compile(r"No module named '(jax[\w.]+)'")
_MEMBER = re.compile(r"(?:type object )?'(\w+)'(?: object)? has no attribute '(\w+)'")
_TOLD = re.compile(
    r"\b((?:pl|pltpu|plgpu|plsc|jax(?:\.\w+)*)\.\w+) (?:is|was|has been|have been) "
    r"(?:deprecated|removed|deleted|moved)"
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one message means.

    `text` is the message as jax gives it, `since` the jax that gives it first, `code` the rule
    that repairs it; where there is none, `way_out` says what to do. `pattern` finds the message,
    `frame` a frame of its traceback that it takes as well, and `where` says which.
    """

    text: str
    meaning: str
    since: str = ""
    code: str = ""
    way_out: str = ""
    pattern: str = ""
    frame: str = ""
    where: str = ""

    def found(self, message: str) -> str:
        """The message from where it was recognised; empty where it is another one."""
        if self.frame and not re.search(self.frame, message):
            return ""
        match = re.search(self.pattern, message)
        return message[match.start() :] if match else ""


@cache
def table() -> Sequence[Meaning]:
    """The messages of `rules/tables/messages.toml`, in their order."""
    with (TABLES / "messages.toml").open("rb") as handle:
        return tuple(Meaning(**entry) for entry in tomllib.load(handle)["message"])


def meanings(message: str) -> Iterator[Meaning]:
    """What a message, or a traceback, means: the most exact meaning first.

    What asks for a frame counts more than what does not, and that more than a name.
    """
    found = [entry for entry in table() if entry.found(message)]
    yield from sorted(found, key=lambda entry: (not entry.frame, -len(entry.pattern)))
    for path, words in _paths(message):
        row = _row(path)
        if row is not None:
            yield _of_a_name(row, words)


def names_something(message: str) -> bool:
    """True if the message is about a name of jax, known or not."""
    return any(_paths(message))


def _paths(message: str) -> Iterator[tuple[str, str]]:
    """The names that a message speaks of, each with its words; a member comes as `.Class.name`."""
    for match in _MODULE.finditer(message):
        yield f"{match[1]}.{match[2]}", match[0]
    for match in _IMPORT.finditer(message):
        yield f"{match[2]}.{match[1]}", match[0]
    for match in chain(_MISSING.finditer(message), _TOLD.finditer(message)):
        yield match[1], match[0]
    for match in _MEMBER.finditer(message):
        if not match[1].startswith("jax"):
            yield f".{match[1]}.{match[2]}", match[0]


def _row(path: str) -> Row | None:
    """The row of a name, of a module, or of something in a module that is gone as a whole."""
    name = path if path.startswith("jax._src.") else short(path)
    if name in rows():
        return newest(rows()[name], NEWEST)
    if path in modules():
        return modules()[path]
    ends = f"{path}." if not path.startswith(".") else None
    kind, _, member = path.removeprefix(".").partition(".")
    for named in rows().values():
        first = named[0].name
        # A member of an enum has the methods of its class: `SemaphoreType.DMA.get_aval`.
        of_kind = first.endswith(path) or (f".{kind}." in first and first.endswith(f".{member}"))
        if of_kind if ends is None else first.startswith(ends):
            return newest(named, NEWEST)
    return None


def _of_a_name(row: Row, words: str) -> Meaning:
    change = row.change
    since = change.fails or change.warns
    told = f"`{row.old}` is {change}"
    if row.new:
        told += f"; it is `{row.new}` now."
    elif row.reason:
        told += f": {row.reason}."
    else:
        told += "; each use of it becomes something else."
    code = "" if row.reason else row.rule or _RENAMED
    return Meaning(words, told, str(since or ""), code, row.way_out, re.escape(words))
