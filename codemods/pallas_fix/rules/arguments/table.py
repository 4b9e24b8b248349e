"""Reads the table of changed arguments, `rules/tables/arguments.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

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


def triggers() -> tuple[str, ...]:
    """Words one of which is in every file that the rows are about."""
    return ("pallas", "jnp", "jax.numpy", "ShapeDtypeStruct")
