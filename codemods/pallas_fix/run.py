"""The corridor: discover, read, find, fix, verify, decide, write, report."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from pallas_fix.config import Config
from pallas_fix.examine import Examined, examine_all
from pallas_fix.files import Source, SourceError, write
from pallas_fix.projects import Projects
from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.rules.base import Reason, Rule
from pallas_fix.settle import Settled, settle
from pallas_fix.tasks import Tasks
from pallas_fix.verify.verdict import Level, Stage
from pallas_fix.versions import RELEASES

if TYPE_CHECKING:
    from pallas_fix.baseline import Baseline
    from pallas_fix.changes import Changes
    from pallas_fix.sieve import Key
    from pallas_fix.verification import Climber, Verification
    from pallas_fix.verify.commands import Commands


MOST_WORKERS = 8
"""Workers of the ladder that run at once: each takes about half a gigabyte of memory."""


@dataclass(frozen=True)
class Request:
    """What a run is to do.

    `write` rewrites files in place; without it the account says what would be written. `verify`
    is False with `--no-verify`. `cache` remembers what jobs answer. `device` takes nothing as
    verified that no device has run. `unverified` also writes plausible fixes that nothing could
    verify. `standard_input` comes in the place of `paths`, if given; it is never written to its
    path. `commands` are run on the project before and after. Only findings on lines of `changes`
    count, and only those that `baseline` does not know. With `add_ignore`, the reason, what is left
    gets comments that ignore it.
    """

    projects: Projects
    paths: Sequence[Path] = ()
    standard_input: Source | None = None
    write: bool = True
    verify: bool = True
    until: Stage = Stage.DEVICE
    cache: bool = False
    device: bool = False
    unverified: bool = False
    jobs: int = 1
    commands: Sequence[str] = ()
    force_exclude: bool = False
    changes: Changes | None = None
    baseline: Baseline | None = None
    add_ignore: str | None = None


@dataclass
class Run:
    """One run. `account` may be asked at any time, also after an interruption."""

    request: Request
    rules: dict[str, type[Rule]]
    say: Callable[[str], None] = lambda text: None
    ladder: Callable[[], Climber] | None = None
    _ladders: dict[tuple[Path, Path | None], Climber] = field(default_factory=dict)
    _commands: dict[Path, Commands | None] = field(default_factory=dict)
    _files: list[FileAccount] = field(default_factory=list)
    _problems: list[SourceError] = field(default_factory=list)
    _notes: dict[str, None] = field(default_factory=dict)
    _open: ExitStack = field(default_factory=ExitStack)

    def go(self) -> Account:
        """Do all of it, one file after the other; each is written as soon as it is decided.

        Raises ConfigError for a command that cannot be run.
        """
        with self._open:
            self._commands_of(self.request.projects.main)
            given = self.request.standard_input
            tasks = (
                self._tasks.of_input(given) if given else self._tasks.of_paths(self.request.paths)
            )
            for examined in examine_all(tasks, self.request.jobs):
                self._tasks.took(examined)
                if not examined.empty:
                    self._files.append(self._finish(examined))
            return self.account()

    def left(self) -> dict[str, Mapping[Key, int]]:
        """All that is now found in the files that were looked at, by their real paths."""
        found = dict(self._tasks.found)
        if self.request.write:
            for file in self._files:
                if file.changed:
                    real = os.path.realpath(file.path)
                    found[real] = self._tasks.found_in(file.path, file.source.encode(file.after))
        return found

    @cached_property
    def _tasks(self) -> Tasks:
        request = self.request
        return Tasks(
            request.projects,
            self.rules,
            request.changes,
            request.baseline,
            force_exclude=request.force_exclude,
        )

    def account(self) -> Account:
        """What was found and done so far."""
        problems = [*self._tasks.problems, *self._problems]
        return Account(
            tuple(self._files),
            tuple(sorted(problems, key=lambda problem: problem.path.parts)),
            self._tasks.looked_at,
            written=self.request.write,
            verified=self.request.verify,
            hardware=self._hardware(),
            notes=(*self._notes, *self._tasks.notes()),
            wanted=_LEVELS.get(self.request.until, Level.COMPILED),
            left_alone=self._tasks.left_alone,
            jax=" and ".join(dict.fromkeys(map(str, self._tasks.wanted.values()))),
        )

    def _finish(self, examined: Examined) -> FileAccount:
        """Decide what is written of one file, write it, and give its account."""
        source = examined.task.source
        verification = self._verification if self.request.verify else None
        if examined.outcome is not None and examined.outcome.applied:
            self._run_first(source)
        try:
            settled = settle(examined, verification, self.request.unverified, self.rules)
        except SourceError as error:
            return FileAccount(source.path, source, source.text, problem=error)
        self._problems.extend(settled.problems)
        notes: tuple[str, ...] = ()
        if self.request.add_ignore is not None:
            try:
                settled, notes = _ignoring(source, settled, self.request.add_ignore)
            except SourceError as error:
                return FileAccount(source.path, source, source.text, problem=error)
        if verification is not None and settled.text != source.text:
            verification.decided(source, settled.text)
        done = FileAccount(source.path, source, settled.text, settled.entries, notes)
        if done.changed and self.request.write and self.request.standard_input is None:
            try:
                note = write(source, settled.text)
            except SourceError as error:
                return _unwritten(done, error)
            done = replace(done, notes=(*notes, note) if note else notes)
        self._note_minimum(source.path, settled.entries)
        return done

    @cached_property
    def _verification(self) -> Verification:
        from pallas_fix.verification import Verification

        request = self.request
        return Verification(
            request.projects.of, self._ladder, request.until, request.device, self._commands_of
        )

    def _commands_of(self, config: Config) -> Commands | None:
        """The commands of the run, for a project; None where there are none."""
        if not self.request.commands:
            return None
        if config.root not in self._commands:
            from pallas_fix.verify.commands import commands_of

            self._commands[config.root] = commands_of(
                self.request.commands, config.root, config.python, config.targets, self.say
            )
        return self._commands[config.root]

    def _run_first(self, source: Source) -> None:
        """Run the commands on the project as it is, if they have not been yet."""
        commands = self._commands_of(self.request.projects.of(source.path))
        if commands is not None:
            from pallas_fix.verify.commands import reasons, summary

            for ran in commands.first():
                self._notes |= dict.fromkeys(filter(None, (summary(ran), reasons(ran))))

    def _ladder(self, config: Config) -> Climber:
        """The ladder under the interpreters that `config` names; those of each are started once."""
        pythons = config.python, config.before_python
        if pythons not in self._ladders:
            self._ladders[pythons] = self.ladder() if self.ladder else self._opened(*pythons)
        return self._ladders[pythons]

    def _opened(self, python: Path, before_python: Path | None) -> Climber:
        from pallas_fix.verify.cache import Cache, default_folder
        from pallas_fix.verify.ladder import Ladder

        ladder = Ladder(
            python,
            before_python=before_python,
            jobs=min(self.request.jobs, MOST_WORKERS),
            until=self.request.until,
            cache=Cache(default_folder()) if self.request.cache else None,
            say=self.say,
        )
        return self._open.enter_context(ladder)

    def _hardware(self) -> str:
        if not self.request.verify:
            return "no kernel was run: --no-verify"
        if "_verification" not in vars(self):
            return "no kernel was run: nothing to verify"
        return self._verification.hardware

    def _note_minimum(self, path: Path, entries: Sequence[Entry]) -> None:
        """Say so where a fix needs a newer jax than the project asks for."""
        asked = self.request.projects.of(path).requires_jax
        fixed = [entry for entry in entries if entry.state is State.FIXED]
        if not asked or not fixed:
            return
        needed = max(
            entry.finding.change.works
            if entry.finding.change
            else self.rules[entry.finding.code].applies.low
            for entry in fixed
        )
        lowest = next(iter(SpecifierSet(asked).filter(RELEASES)), needed)
        if lowest < needed:
            note = f"raises the lowest jax that works to {needed}: the project asks for jax{asked}"
            self._notes[note] = None


def _ignoring(source: Source, settled: Settled, reason: str) -> tuple[Settled, tuple[str, ...]]:
    """What is settled, with comments that ignore what is left, and a note that says so.

    Raises SourceError where such a comment has no place.
    """
    from pallas_fix.ignoring import Misplaced, with_ignores

    left = [entry.finding for entry in settled.entries if entry.state is not State.FIXED]
    if not left:
        return settled, ()
    try:
        text = with_ignores(settled.text, left, reason)
    except Misplaced as error:
        raise SourceError(source.path, None, f"no ignores are added: {error}") from None
    source.encode(text)
    fixed = tuple(entry for entry in settled.entries if entry.state is State.FIXED)
    counts = Counter(finding.code for finding in left)
    told = ", ".join(f"{code} ({count})" for code, count in sorted(counts.items()))
    return replace(settled, text=text, entries=fixed), (f"ignored from now on: {told}",)


def _unwritten(file: FileAccount, error: SourceError) -> FileAccount:
    """The account of a file that could not be written: nothing of it is fixed."""
    reason = Reason("not-written", "its file was not written", "see the error, then run again")
    entries = tuple(
        replace(entry, state=State.NOT_FIXED, reason=reason)
        if entry.state is State.FIXED
        else entry
        for entry in file.located(written=False)
    )
    return replace(file, after=file.source.text, entries=entries, problem=error)


_LEVELS = {Stage.TRACE: Level.TRACED, Stage.LOWER: Level.LOWERED}
"""What a run that stops early can know at most; one that does not, at least `compiled`."""
