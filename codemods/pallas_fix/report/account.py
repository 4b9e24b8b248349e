"""What a run found and did, as every report reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from pallas_fix.edits import Span
from pallas_fix.files import Source, SourceError
from pallas_fix.report.lines import Moves
from pallas_fix.rules.base import Finding, Reason
from pallas_fix.verify.verdict import Hazard, Level, Verdict


class State(StrEnum):
    """What became of a finding."""

    FIXED = "fixed"
    SHOWN = "shown"
    NOT_FIXED = "not fixed"


@dataclass(frozen=True)
class Entry:
    """One finding, and what became of it.

    A `fixed` one has a verdict (None with `--no-verify`) and no reason. A `shown` one has a fix
    that was not written: `preview` holds its hunks, and the reason says what would have it
    written. A `not fixed` one has the reason. `case` is the line that would verify the fix,
    where nothing did. `alone` gives the text of the file with this fix and no other, None where it
    goes only with others; it is worked out when it is called, which formats do that need it.
    """

    finding: Finding
    rule: str
    state: State
    verdict: Verdict | None = None
    reason: Reason | None = None
    preview: bytes = b""
    case: str = ""
    alone: Callable[[], str | None] = field(default=lambda: None, compare=False, repr=False)


@dataclass(frozen=True)
class FileAccount:
    """One file in which something was found, or to which something happened.

    `after` is what `apply` writes, equal to the text of `source` where nothing changes. Spans of
    fixed entries are those of the text before, the others those of the text after. `problem` is
    set where the file could not be dealt with: then nothing was written, and no entry is fixed.
    """

    path: Path
    source: Source
    after: str
    entries: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    problem: SourceError | None = None

    @property
    def changed(self) -> bool:
        """True where the run writes the file, or would."""
        return self.after != self.source.text

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """What the emulator saw in the file as the run leaves it, each kind once a place."""
        seen: dict[tuple[str, str], Hazard] = {}
        for entry in self.entries:
            if entry.state is State.FIXED and entry.verdict:
                for case in entry.verdict.cases:
                    for hazard in case.after.hazards:
                        seen.setdefault((hazard.kind, hazard.where), hazard)
        return tuple(seen.values())

    def located(self, written: bool) -> tuple[Entry, ...]:
        """The entries in the order of the file as it now is, with spans in that text."""
        there = Moves(self.source.text, self.after)
        entries = []
        for entry in self.entries:
            span = entry.finding.span
            if written and entry.state is State.FIXED:
                span = _moved(span, there.forth(span.line) - span.line)
            elif not written and entry.state is not State.FIXED:
                span = _moved(span, there.back(span.line) - span.line)
            entries.append(replace(entry, finding=replace(entry.finding, span=span)))
        return tuple(sorted(entries, key=lambda entry: entry.finding.span))


@dataclass(frozen=True)
class Account:
    """A whole run.

    `looked_at` counts files. `written` tells a run that writes from one that only says what it
    would write. `verified` is False with `--no-verify`. `hardware` is the sentence about where
    kernels ran. `notes` are about the run, not about one file. `interrupted` tells a run that did
    not come to its end, `recorded` one after which a baseline knows all that is left. `left_alone`
    counts findings that are not on changed lines, or that a baseline knows. `options` are the words
    of the command line that another run needs to find and verify the same.
    """

    files: tuple[FileAccount, ...]
    problems: tuple[SourceError, ...]
    looked_at: int
    written: bool
    verified: bool
    hardware: str
    notes: tuple[str, ...] = ()
    wanted: Level = Level.COMPILED
    jax: str = ""
    interrupted: bool = False
    recorded: bool = False
    left_alone: int = 0
    options: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = field(init=False)

    def __post_init__(self) -> None:
        entries = tuple(entry for file in self.files for entry in file.entries)
        object.__setattr__(self, "entries", entries)

    def of(self, *states: State) -> tuple[Entry, ...]:
        """The entries in one of these states."""
        return tuple(entry for entry in self.entries if entry.state in states)

    @property
    def status(self) -> int:
        """The exit status: 130 if interrupted, 2 after a problem, 1 if not all is done, else 0."""
        if self.interrupted:
            return 130
        if self.problems or any(file.problem for file in self.files):
            return 2
        if self.recorded:
            return 0
        left = bool(self.of(State.SHOWN, State.NOT_FIXED)) or (
            not self.written and any(file.changed for file in self.files)
        )
        hazards = any(hazard.serious for file in self.files for hazard in file.hazards)
        weak = any(self._too_weak(entry) for entry in self.of(State.FIXED))
        return int(left or hazards or weak)

    def _too_weak(self, entry: Entry) -> bool:
        fix = entry.finding.fix
        if not self.verified or entry.verdict is None or (fix and fix.only_comments):
            return False
        order = list(Level)
        return order.index(entry.verdict.level) > order.index(self.wanted)


def _moved(span: Span, by: int) -> Span:
    return replace(span, line=span.line + by, end_line=span.end_line + by)
