"""Reads the tables of renamed names, `rules/tables/*.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from packaging.version import Version

from pallas_fix.facts.paths import whole
from pallas_fix.facts.words import identifiers, imports_jax
from pallas_fix.versions import Change, changed

TABLES = Path(__file__).parent.parent / "tables"
_CALL = "()"


@dataclass(frozen=True, slots=True)
class Row:
    """One name that changed.

    `old` and `new` are short names (`pltpu.CompilerParams`), or whole paths where the module has
    no short one; an `old` that ends with `()` is a call without arguments. `new` may be any
    expression that begins with a name, and is empty where there is none: then `reason` and
    `way_out` say why. `imports` is a module that must be imported before `new` can be written
    out. `module` tells of a module that moved. `attribute` says that `new` is not imported by
    its last name, but written out, as `jax.tree.map` is. `rule` is the code of the rule that
    repairs the uses of the name, where they become more than another name.
    """

    old: str
    new: str = ""
    works: str = "0.4.30"
    warns: str = ""
    fails: str = ""
    note: str = ""
    source: str = ""
    reason: str = ""
    way_out: str = ""
    imports: str = ""
    module: bool = False
    attribute: bool = False
    rule: str = ""

    @property
    def change(self) -> Change:
        """Since when the old name warns and fails, and the new one works."""
        return changed(self.works, warns=self.warns, fails=self.fails)

    @property
    def name(self) -> str:
        """The old name, also where the row is about its call."""
        return self.old.removesuffix(_CALL)

    @property
    def called(self) -> bool:
        """True where the row is about a call without arguments."""
        return self.old.endswith(_CALL)


def read(file: Path) -> tuple[Row, ...]:
    """The rows of one table. Raises ValueError or TypeError where the table is none."""
    with file.open("rb") as handle:
        return tuple(Row(**entry) for entry in tomllib.load(handle).get("name", ()))


@cache
def _every() -> tuple[Row, ...]:
    return tuple(row for file in sorted(TABLES.glob("*.toml")) for row in read(file))


@cache
def rows() -> Mapping[str, Sequence[Row]]:
    """The rows of names by the old one; several rows of one name have other new forms."""
    found: dict[str, list[Row]] = {}
    for row in _every():
        if not row.module:
            found.setdefault(row.name, []).append(row)
    return found


@cache
def modules() -> Mapping[str, Row]:
    """The rows of modules, by their whole paths."""
    return {row.name: row for row in _every() if row.module}


@cache
def last_words() -> frozenset[str]:
    """The last part of each old name: what a use of it ends with."""
    return frozenset(row.name.rpartition(".")[2] for row in _every())


@cache
def _parts() -> tuple[frozenset[str], ...]:
    """The words of each old path, all of which are in a file that uses it."""
    paths = {whole(row.name) for row in _every()}
    return tuple({frozenset(path.split(".")) for path in paths})


def may_use(text: str) -> bool:
    """False for a text that uses no old name: it lacks some word of each."""
    words, public = identifiers(text), imports_jax(text)
    return any(parts <= words and (public or "_src" in parts) for parts in _parts())


def newest(named: Sequence[Row], oldest: Version) -> Row:
    """The row whose form is the newest that works on `oldest`, else the one that works first."""
    fitting = [row for row in named if row.change.works <= oldest]
    if not fitting:
        return min(named, key=lambda row: row.change.works)
    return max(fitting, key=lambda row: row.change.works)


def triggers() -> tuple[str, ...]:
    """Words one of which is in every file that uses an old name.

    A name that is too common a word to look for is looked for by its module.
    """
    words = {"pallas"}
    for row in _every():
        first, _, rest = row.name.partition(".")
        last = row.name.rpartition(".")[2]
        if first in _PALLAS or "pallas" in row.name:
            continue
        if not row.name.startswith("jax.core.") and ("_" in last or _CAMEL.search(last)):
            words.add(last)
            continue
        module = rest.partition(".")[0] if first == "jax" else last
        words.add(f"jax.{module}" if first == "jax" else f".{last}")
        if module != last or module == rest:
            words.update((f"import {module}", f", {module}", f"  {module},"))
    return tuple(sorted(words))


_CAMEL = re.compile(r"[a-z][A-Z]")
_PALLAS = frozenset({"pl", "pltpu", "plgpu", "triton", "plsc", "fuser"})
