"""Which files a run looks at, with which rules, and what of it counts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_fix.config import Config
from pallas_fix.discover import discover
from pallas_fix.examine import Examined, Task, candidate, examine, trigger_words
from pallas_fix.files import Source, SourceError, read_bytes
from pallas_fix.projects import Projects
from pallas_fix.pyproject import ConfigError
from pallas_fix.ranges import EVERY, Lines
from pallas_fix.rules.base import Options, Rule, needs_newer

if TYPE_CHECKING:
    from pallas_fix.baseline import Baseline
    from pallas_fix.changes import Changes
    from pallas_fix.pins import Wanted
    from pallas_fix.sieve import Key


@dataclass
class Tasks:
    """The tasks of one run, and what its account tells of them.

    `looked_at` counts files. `found` has the findings of those in which all could be found, by
    their real paths, whether they count or not.
    """

    projects: Projects
    rules: Mapping[str, type[Rule]]
    changes: Changes | None = None
    baseline: Baseline | None = None
    force_exclude: bool = False
    looked_at: int = 0
    problems: list[SourceError] = field(default_factory=list)
    found: dict[str, Mapping[Key, int]] = field(default_factory=dict)
    wanted: dict[Config, Wanted] = field(default_factory=dict)
    _unchanged: int = 0
    _known: int = 0

    def of_paths(self, paths: Sequence[Path]) -> list[Task]:
        """The tasks for the files below the paths. Raises ConfigError."""
        if self.changes is not None:
            self.changes.check(paths)
        return list(self._tasks(self._read(paths)))

    def of_input(self, given: Source) -> list[Task]:
        """The task for standard input, if it needs one. Raises ConfigError."""
        self.looked_at += 1
        return list(self._tasks([candidate(given.path, lambda path: given.data, self._words())]))

    def took(self, examined: Examined) -> None:
        """Remember what was found in a file."""
        self.problems += examined.problems
        task = examined.task
        real = os.path.realpath(task.source.path)
        if examined.outcome is None:
            self.found.pop(real, None)
            return
        self.found[real] = examined.found
        self._unchanged += examined.unchanged
        self._known += sum(
            count for key, count in examined.found.items() if count <= task.known.get(key, 0)
        )

    @property
    def left_alone(self) -> int:
        """How many findings do not count."""
        return self._unchanged + self._known

    def found_in(self, path: Path, data: bytes) -> Mapping[Key, int]:
        """What would be found in the file at `path` if it held `data`."""
        task = self._task(Source(path, data))
        return examine(task).found if task else {}

    def notes(self) -> Iterator[str]:
        """What the account says of findings that do not count."""
        if self.changes is not None and not self.looked_at:
            yield f"no file has changed ({self.changes})"
        if self._unchanged:
            yield f"{_count(self._unchanged)} on unchanged lines: left alone"
        if self.baseline is None:
            return
        if self._known:
            yield f"{_count(self._known)} known to {self.baseline.file}: left alone"
        yield from self.baseline.unused(self.found, self._asks)

    def _words(self) -> tuple[bytes, ...]:
        return trigger_words(self.rules.values())

    def _read(self, paths: Sequence[Path]) -> Iterator[Source | SourceError | None]:
        words = self._words()
        for path in discover(paths, self.projects.excludes, named_too=self.force_exclude):
            if isinstance(path, SourceError):
                yield path
            elif self.changes is None or self.changes.concern(path):
                self.looked_at += 1
                if self.baseline is not None:
                    self.found[os.path.realpath(path)] = {}
                yield candidate(path, read_bytes, words)

    def _tasks(self, items: Iterable[Source | SourceError | None]) -> Iterator[Task]:
        for item in items:
            try:
                if isinstance(item, SourceError):
                    raise item
                task = self._task(item) if item else None
                if task:
                    yield task
            except SourceError as error:
                self.found.pop(os.path.realpath(error.path), None)
                self.problems.append(error)

    def _task(self, source: Source) -> Task | None:
        """The source with the rules for it; None if no line of it counts. Raises SourceError."""
        lines = self.changes.lines(source.path, source.data) if self.changes else EVERY
        if lines == Lines():
            self.found.pop(os.path.realpath(source.path), None)
            return None
        try:
            config = self.projects.of(source.path)
        except ConfigError as error:
            raise SourceError(source.path, None, f"left alone: {error}") from None
        asked = self._asked(source.path, config)
        wanted = self._wanted_by(config)
        no_fix = {
            code: needs_newer(rule.applies, f"{wanted} ({wanted.origin})")
            for code, rule in asked.items()
            if wanted.closed and any(version not in rule.applies for version in wanted.versions)
        }
        options = Options(config.loads, config.targets, wanted.versions, wanted.closed)
        known = self.baseline.known(source.path) if self.baseline else {}
        return Task(source, tuple(asked.values()), options, no_fix, lines, known)

    def _asked(self, path: Path, config: Config) -> dict[str, type[Rule]]:
        """The rules for a file: selected, not ignored there, and of that jax."""
        wanted = self._wanted_by(config)
        return {
            code: rule
            for code, rule in self.rules.items()
            if config.selects(code)
            and not config.ignores(path, code)
            and any(version in rule.applies for version in wanted.versions)
        }

    def _asks(self, path: Path, code: str) -> bool:
        """True if the rule looks at the file, or is no more."""
        try:
            return code not in self.rules or code in self._asked(path, self.projects.of(path))
        except ConfigError:
            return False

    def _wanted_by(self, config: Config) -> Wanted:
        if config not in self.wanted:
            from pallas_fix.pins import wanted_jax

            origin = config.origins.get("jax", "")
            self.wanted[config] = wanted_jax(config.jax, config.root, config.python, origin)
        return self.wanted[config]


def _count(number: int) -> str:
    return f"{number} finding" if number == 1 else f"{number} findings"
