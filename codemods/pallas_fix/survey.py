"""What a move from one jax to another breaks in a tree, and how much of it is repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from packaging.version import Version

from pallas_fix.examine import examine_all
from pallas_fix.files import SourceError
from pallas_fix.projects import Projects
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.tasks import Tasks
from pallas_fix.versions import Change


class Lot(StrEnum):
    """What happens to a form between the two versions."""

    BREAKS = "breaks"
    """It works on the first version, and fails on the last."""
    WARNS = "warns"
    """It works on both, and is deprecated on the last."""
    BROKEN = "broken"
    """It fails on the first version already."""


@dataclass(frozen=True, slots=True)
class Use:
    """One place with a form that changes.

    `repaired` tells whether `pallas-fix apply` has a fix for it. The line is that of the file,
    as long as no fix above it has moved it.
    """

    path: Path
    finding: Finding
    change: Change
    lot: Lot
    repaired: bool

    @property
    def since(self) -> Version:
        """The jax from which on it has its lot."""
        since = self.change.warns if self.lot is Lot.WARNS else self.change.fails
        assert since is not None
        return since

    @property
    def what(self) -> str:
        """The message of the finding, without the versions."""
        return self.finding.message.replace(f" is {self.change}", "", 1)


@dataclass(frozen=True, slots=True)
class Group:
    """The uses of one form."""

    lot: Lot
    code: str
    what: str
    since: Version
    uses: tuple[Use, ...]

    @property
    def repaired(self) -> int:
        """How many of them have a fix."""
        return sum(use.repaired for use in self.uses)

    @property
    def files(self) -> Mapping[Path, int]:
        """The files, each with its number of uses."""
        found: dict[Path, int] = {}
        for use in self.uses:
            found[use.path] = found.get(use.path, 0) + 1
        return found


@dataclass(frozen=True, slots=True)
class Survey:
    """The uses of what changes from the jax `low` to the jax `high`."""

    low: Version
    high: Version
    uses: tuple[Use, ...]
    looked_at: int
    problems: tuple[SourceError, ...] = ()

    def groups(self, lot: Lot) -> list[Group]:
        """The forms of one lot, the most frequent first."""
        together: dict[tuple[str, str, Version], list[Use]] = {}
        for use in self.uses:
            if use.lot is lot:
                together.setdefault((use.finding.code, use.what, use.since), []).append(use)
        groups = [Group(lot, *name, tuple(uses)) for name, uses in together.items()]
        return sorted(groups, key=lambda group: (-len(group.uses), group.code, group.what))


def survey(
    projects: Projects,
    rules: Mapping[str, type[Rule]],
    paths: Sequence[Path],
    low: Version,
    high: Version,
    jobs: int,
) -> Survey:
    """Look at all files below the paths. `projects` must ask for the jax `high`.

    Raises ConfigError.
    """
    tasks = Tasks(projects, rules)
    uses: list[Use] = []
    for examined in examine_all(tasks.of_paths(paths), jobs):
        tasks.took(examined)
        if examined.outcome is not None:
            path = examined.task.source.path
            uses += _uses(path, examined.outcome.applied, low, repaired=True)
            uses += _uses(path, examined.outcome.remaining, low, repaired=False)
    return Survey(low, high, tuple(uses), tasks.looked_at, tuple(tasks.problems))


def _uses(path: Path, findings: Sequence[Finding], low: Version, repaired: bool) -> Iterator[Use]:
    for finding in findings:
        if finding.change is not None:
            yield Use(path, finding, finding.change, _lot(finding, low), repaired)


def _lot(finding: Finding, low: Version) -> Lot:
    change = finding.change
    if change is None or change.fails is None:
        return Lot.WARNS
    return Lot.BROKEN if change.fails <= low else Lot.BREAKS
