"""Reads the table of changed arguments, `rules/tables/arguments.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pallas_fix.facts.paths import whole
from pallas_fix.facts.words import identifiers
from pallas_fix.rules.renames.table import TABLES
from pallas_fix.versions import Change, changed


@dataclass(frozen=True, slots=True)
class Argument:
    """One row; the head of the table says what its keys mean."""

    call: str
    old: str = ""
    new: str = ""
    code: str = ""
    drop: bool = False
    only: Sequence[str] = ()
    positional: Sequence[str] = ()
    keep: int = 0
    unnamed: str = ""
    becomes: str = ""
    refuse: Sequence[str] = ()
    works: str = "0.4.30"
    warns: str = ""
    fails: str = ""
    note: str = ""
    way_out: str = ""
    source: str = ""

    @property
    def change(self) -> Change:
        """Since when the old form warns and fails, and the new one works."""
        return changed(self.works, warns=self.warns, fails=self.fails)

    @property
    def what(self) -> str:
        """The old form and the new one, in words."""
        name = self.call.removesuffix("()")
        if self.becomes:
            return f"`{name}` {{}}: now `{self.becomes}`"
        if self.unnamed:
            return f"`{self.unnamed}=` of `{name}` {{}}: it is given by position now"
        if self.positional:
            taken = self.positional[self.keep :]
            which = f"`{taken[0]}`" if len(taken) == 1 else "arguments"
            return f"{which} of `{name}` by position {{}}: by keyword now"
        now = f"now `{self.new}=`" if self.new else "it is dropped"
        return f"`{self.old}=` of `{name}` {{}}: {now}"


@cache
def arguments() -> Mapping[str, Sequence[Argument]]:
    """The rows by what is called."""
    found: dict[str, list[Argument]] = {}
    with (TABLES / "arguments.toml").open("rb") as handle:
        for entry in tomllib.load(handle)["argument"]:
            row = Argument(**entry)
            found.setdefault(row.call, []).append(row)
    return found


@cache
def _words() -> tuple[frozenset[str], ...]:
    """For each row, words all of which are in a file that it is about."""
    found = set()
    for rows in arguments().values():
        for row in rows:
            words = whole(row.call.removesuffix("()")).split(".")
            words += [word for word in (row.old, row.unnamed) if word]
            found.add(frozenset(words))
    return tuple(found)


def may_call(text: str) -> bool:
    """False for a text with no call that a row is about: it lacks some word of each."""
    words = identifiers(text)
    fitting = [parts for parts in _words() if parts <= words]
    if fitting == [_ARRAY]:
        return _THREE.search(text) is not None
    return bool(fitting)


_ARRAY = frozenset({"jax", "numpy", "array"})
_THREE = re.compile(r"\barray\((?:[^()]|\([^()]*\))*?,(?:[^()]|\([^()]*\))*?,")
"""A call of `array` with a third argument, as far as can be told without parsing it."""


def triggers() -> tuple[str, ...]:
    """Words one of which is in every file that the rows are about."""
    return ("pallas", "jnp", "jax.numpy", "ShapeDtypeStruct")
