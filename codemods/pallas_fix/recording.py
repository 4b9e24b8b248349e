"""`pallas-fix record`: what commands launch, as cases in a file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pallas_fix.config import Config
from pallas_fix.files import SourceError, put
from pallas_fix.verify.casefile import case_file, read_cases
from pallas_fix.verify.command import Ran
from pallas_fix.verify.commands import Commands, count, summary
from pallas_fix.verify.recorded import Recorded, merged, rebased

MOST_REASONS = 10


@dataclass(frozen=True)
class Recording:
    """How the commands ended, the cases of their launches, and what was done to the file.

    `kept` are the cases that the file had before, `missing` counts files of the project that the
    commands did not have.
    """

    ran: tuple[Ran, ...]
    cases: tuple[Recorded, ...]
    kept: tuple[Recorded, ...]
    file: Path
    missing: int

    @property
    def status(self) -> int:
        """0 where every command ended well and something was recorded, else 1."""
        return int(not self.cases or any(one.error for one in self.ran))

    def lines(self) -> Iterator[str]:
        """What people are told."""
        yield from map(summary, self.ran)
        refused: Counter[str] = Counter()
        for one in self.ran:
            refused.update(one.told.refused)
        if refused:
            launches = count(refused.total(), "launch", "launches")
            yield f"no case can be written for {launches}:"
            for reason, times in sorted(refused.most_common(MOST_REASONS)):
                yield f"    {times} x {reason}"
            if len(refused) > MOST_REASONS:
                yield f"    and {count(len(refused) - MOST_REASONS, 'other reason')}"
        for note in dict.fromkeys(note for one in self.ran for note in one.told.notes):
            yield f"note: {note}"
        if self.missing and any(one.error for one in self.ran):
            yield f"note: {count(self.missing, 'large file')} of the project could not be copied"
        yield self._outcome()

    def write(self) -> None:
        """Write the file, at once and whole. Raises SourceError."""
        try:
            put(self.file, case_file(self.cases, self.kept).encode())
        except OSError as error:
            raise SourceError(self.file, None, f"cannot be written: {error.strerror}") from None

    def _outcome(self) -> str:
        if not self.cases:
            return f"nothing recorded: {self.file.name} is not written"
        same = {str(one.case) for one in self.kept}
        now = {str(one.case) for one in self.cases}
        own = len([one for one in self.kept if not one.command])
        gone = len(same - now) - own
        changes = ", ".join(
            part
            for part in (
                f"{len(now - same)} new" if same and now - same else "",
                f"{gone} no longer launched" if gone > 0 else "",
            )
            if part
        )
        return f"wrote {count(len(now), 'case')} to {self.file}{f' ({changes})' if changes else ''}"


def record(commands: Commands, config: Config, file: Path) -> Recording:
    """Run the commands; the caller writes the `file`. Raises ConfigError."""
    kept = read_cases(file) if os.path.isfile(file) else ()
    ran = commands.first()
    moved = (rebased(one, commands.base, config.root) for one in commands.recorded)
    cases = merged(one for one in moved if one is not None)
    return Recording(tuple(ran), tuple(cases), kept, file, commands.missing)
