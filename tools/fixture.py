"""Reads the fixtures of the rules, and shows or writes what the rules make of one.

python tools/fixture.py TPU001/scratch_last           show the diff and compare with after.py
python tools/fixture.py TPU001/scratch_last --write   show the diff and write after.py
"""

from __future__ import annotations

import argparse
import difflib
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from packaging.version import Version

from pallas_fix.files import Source
from pallas_fix.fixpoint import Outcome, fix_text
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Options
from pallas_fix.verify.verdict import Level, Stage

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"


class FixtureError(Exception):
    """A fixture folder that does not say what it must say."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """One folder `tests/fixtures/<CODE>/<name>/`, with what its `case.toml` says.

    `rules` are the codes that run, by default the folder's own. `options` are the rules'
    settings. `negative` says that nothing may be found, `reason` that the finding stays
    unfixed for that reason; in both nothing changes and there is no `after.py`.

    `case` and `target` name the kernel for the real compiler. `error` is a regular expression
    of the message with which `before.py` fails at `stage`; without it `before.py` works too.
    `until` is how far the result gets. `level` is what is then known of the fix: by default what
    its rule promises. `jax` is the old release that the case is for; by default it runs on the
    newest.
    """

    folder: Path
    rules: tuple[str, ...]
    options: Options = field(default_factory=Options)
    negative: bool = False
    reason: str = ""
    case: str = ""
    target: str = ""
    error: str = ""
    stage: Stage | None = None
    until: Stage = Stage.COMPILE
    level: Level | None = None
    jax: str = ""

    @property
    def name(self) -> str:
        """The folder below `tests/fixtures`, as in `TPU001/scratch_last`."""
        return self.folder.relative_to(FIXTURES).as_posix()

    @property
    def promised(self) -> Level:
        """What is to be known of the fix on the newest jax, without a chip."""
        first = self.rules[0]
        equal = first == "GPU001" or all_rules()[first].meant
        return self.level or (Level.EQUAL if equal else Level.COMPILED)

    @property
    def changes(self) -> bool:
        """Whether the rules are to change the file."""
        return not (self.negative or self.reason)

    @property
    def before(self) -> Source:
        return Source.read(self.folder / "before.py")

    @property
    def after(self) -> Source:
        """What the rules must make of the file: `after.py`, or the file as it is."""
        return Source.read(self.folder / "after.py") if self.changes else self.before

    def fix(self, text: str) -> Outcome:
        """What the rules of this fixture make of `text`, with every fix accepted."""
        rules = all_rules()
        return fix_text(
            text,
            str(self.folder / "before.py"),
            [rules[code](self.options) for code in self.rules],
            lambda finding: True,
        )


def read_fixture(folder: Path) -> Fixture:
    """Read one fixture folder; raises FixtureError where it contradicts itself."""
    try:
        table = tomllib.loads((folder / "case.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise FixtureError(f"{folder}: case.toml: {error}") from None
    unknown = set(table) - {item.name for item in fields(Fixture) if item.name != "folder"}
    if unknown:
        raise FixtureError(f"{folder}: case.toml: unknown keys {sorted(unknown)}")
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in table.get("options", {}).items()
    }
    if "versions" in options:
        options["versions"] = tuple(map(Version, options["versions"]))
    settings: dict[str, Any] = table | {
        "folder": folder,
        "rules": tuple(table.get("rules", [folder.parent.name])),
        "options": Options(**options),
        "stage": Stage(table["stage"]) if "stage" in table else None,
        "until": Stage(table.get("until", Stage.COMPILE)),
        "level": Level(table["level"]) if "level" in table else None,
    }
    fixture = Fixture(**settings)
    complaint = _complaint(fixture)
    if complaint:
        raise FixtureError(f"{folder}: {complaint}")
    return fixture


def _complaint(fixture: Fixture) -> str:
    if fixture.negative and fixture.reason:
        return "a negative fixture has no finding, so no reason"
    if not fixture.changes and (fixture.folder / "after.py").exists():
        return "nothing may change here, so there is no after.py"
    if bool(fixture.case) != bool(fixture.target):
        return "case and target belong together"
    if bool(fixture.error) != bool(fixture.stage):
        return "error and stage belong together"
    if fixture.error and not fixture.case:
        return "an error needs a case that shows it"
    if fixture.changes and not fixture.case:
        return "a fixture that is repaired needs a case for the compiler"
    return ""


def all_fixtures() -> Iterator[Fixture]:
    """Every fixture, in the order of their names; raises FixtureError."""
    for folder in sorted(FIXTURES.glob("*/*/")):
        yield read_fixture(folder)


def _diff(old: str, new: str, old_name: str, new_name: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), old_name, new_name
    )
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def main() -> int:
    """Show one fixture's result; the exit status is 1 where it is not what after.py says."""
    parser = argparse.ArgumentParser(description="Show what the rules make of a fixture.")
    parser.add_argument("name", help="the folder below tests/fixtures, as in TPU001/scratch_last")
    parser.add_argument("--write", action="store_true", help="write after.py, once shown")
    arguments = parser.parse_args()
    fixture = read_fixture(FIXTURES / arguments.name)
    source = fixture.before
    outcome = fixture.fix(source.text)
    sys.stdout.write(_diff(source.text, outcome.text, "before.py", "result"))
    for finding in outcome.applied:
        print(f"fixed: {finding.code} line {finding.span.line}: {finding.message}")
    for finding in outcome.remaining:
        reason = finding.reason.code if finding.reason else "not settled"
        print(f"left ({reason}): {finding.code} line {finding.span.line}: {finding.message}")
    if outcome.bug:
        print(f"bug: {outcome.bug}")
        return 1
    if arguments.write and fixture.changes:
        (fixture.folder / "after.py").write_bytes(source.encode(outcome.text))
        print("after.py written: read the diff above before you commit it")
        return 0
    if fixture.changes and not (fixture.folder / "after.py").exists():
        print("there is no after.py yet (--write)")
        return 1
    difference = _diff(fixture.after.text, outcome.text, "after.py", "result")
    sys.stdout.write(difference)
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
