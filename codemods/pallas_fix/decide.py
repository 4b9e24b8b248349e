"""Which fixes of one file are written: what they say together is verified, and the rest dropped.

Fixes are tried together. What is written is always a text that was verified as a whole: whenever
a fix is dropped, the text without it is verified again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pallas_fix.fixpoint import Outcome
from pallas_fix.rules.base import Finding
from pallas_fix.verify.verdict import Level, Verdict

Key = tuple[str, str, str]
Accept = Callable[[Finding], bool]


def key(finding: Finding) -> Key:
    """What names a finding from one pass to the next, while its lines move.

    Findings of one rule in one function with the same message share a key, and their lot.
    """
    return finding.code, finding.function, finding.message


@dataclass(frozen=True)
class Withheld:
    """A fix that is not written: its verdict, and the text that it would give.

    Fixes that share a key share a text: only the first of them has it.
    """

    finding: Finding
    verdict: Verdict
    text: str | None


@dataclass(frozen=True)
class Decision:
    """What is written to one file, the verdicts (in the order of `applied`), and what is not."""

    outcome: Outcome
    verdicts: tuple[Verdict, ...]
    withheld: tuple[Withheld, ...] = ()


@dataclass
class Decider:
    """Decides for one file.

    `fix` gives the text with the fixes of the findings that it is told to accept; `verify` a
    verdict for each finding applied in an outcome; `may_write` tells whether a fix with that
    verdict is written. `first` is the outcome with every fix made, where it is known already.
    """

    fix: Callable[[Accept], Outcome]
    verify: Callable[[Outcome], Sequence[Verdict]]
    may_write: Callable[[Finding, Verdict], bool]
    first: Outcome | None = None
    _known: dict[tuple[str, tuple[Key, ...]], tuple[Verdict, ...]] = field(default_factory=dict)

    def decide(self) -> Decision:
        """Find the largest set of fixes that may be written, and verify it as it is written."""
        denied: dict[Key, Verdict] = {}
        while True:
            outcome, verdicts = self._without(denied)
            applied = list(zip(outcome.applied, verdicts, strict=True))
            dropped = {
                key(finding): verdict
                for finding, verdict in applied
                if verdict.level is Level.REFUTED
            }
            if len({key(finding) for finding in outcome.applied}) > 1 and dropped:
                dropped = self._guilty(dropped, denied)
            if not dropped:
                dropped = {
                    key(finding): verdict
                    for finding, verdict in applied
                    if not self.may_write(finding, verdict)
                }
            if not dropped:
                return Decision(outcome, verdicts, tuple(self._withheld(outcome, denied)))
            denied |= dropped

    def _without(self, denied: Collection[Key]) -> tuple[Outcome, tuple[Verdict, ...]]:
        outcome = self.first
        if outcome is None or denied:
            outcome = self.fix(lambda finding: key(finding) not in denied)
        if not outcome.applied:
            return outcome, ()
        made = outcome.text, tuple(map(key, outcome.applied))
        if made not in self._known:
            self._known[made] = tuple(self.verify(outcome))
        return outcome, self._known[made]

    def _guilty(self, suspects: dict[Key, Verdict], denied: Iterable[Key]) -> dict[Key, Verdict]:
        """Those of the suspects that must go: one if that is enough, else each that spoils."""
        gone = set(denied)
        for suspect, verdict in suspects.items():
            if not self._refuted({*gone, suspect}):
                return {suspect: verdict}
        kept: set[Key] = set()
        for suspect in suspects:
            if not self._refuted(gone | suspects.keys() - kept - {suspect}):
                kept.add(suspect)
        return {suspect: suspects[suspect] for suspect in suspects if suspect not in kept}

    def _refuted(self, denied: Collection[Key]) -> bool:
        _, verdicts = self._without(denied)
        return any(verdict.level is Level.REFUTED for verdict in verdicts)

    def _withheld(self, outcome: Outcome, denied: dict[Key, Verdict]) -> Iterator[Withheld]:
        """The findings that the file still has because their fix was dropped."""
        shown: set[Key] = set()
        for finding in outcome.remaining:
            name = key(finding)
            if finding.fix is None or name not in denied:
                continue
            text = None if name in shown else self._with(name, denied).text
            shown.add(name)
            yield Withheld(finding, denied[name], text)

    def _with(self, wanted: Key, denied: Collection[Key]) -> Outcome:
        return self.fix(lambda finding: key(finding) == wanted or key(finding) not in denied)
