"""What becomes of the findings of one file: the policy of what may be written, and the reasons."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pallas_fix.examine import Examined, Task
from pallas_fix.files import SourceError
from pallas_fix.report.account import Entry, State
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.verify.verdict import Level, Verdict

if TYPE_CHECKING:
    from pallas_fix.decide import Decision, Withheld
    from pallas_fix.fixpoint import Outcome
    from pallas_fix.verification import Verification

_NO_VERIFY = Verdict(Level.UNVERIFIED, "--no-verify")
_COMMENT = Verdict(Level.UNVERIFIED, "only a comment changes, so there is nothing to verify")


@dataclass(frozen=True)
class Settled:
    """The text that is written, what became of each finding, and cases that do not parse."""

    text: str
    entries: tuple[Entry, ...]
    problems: tuple[SourceError, ...] = ()


def settle(
    examined: Examined,
    verification: Verification | None,
    unverified: bool,
    rules: Mapping[str, type[Rule]],
) -> Settled:
    """Decide about one file; without a `verification` nothing is verified.

    Raises SourceError where the file must be left alone.
    """
    from pallas_fix.decide import Decider

    task, source = examined.task, examined.task.source

    def verify(made: Outcome) -> Sequence[Verdict]:
        code = [finding for finding in made.applied if not _only_comments(finding)]
        try:
            if verification is None:
                told = [_NO_VERIFY] * len(code)
            else:
                told = list(verification.verdicts(source, made.text, code, rules) if code else ())
        except Exception as error:
            what = f"internal error while verifying ({error}), left alone; --no-verify goes on"
            raise SourceError(source.path, None, what, traceback.format_exc()) from error
        known = iter(told)
        return [_COMMENT if _only_comments(finding) else next(known) for finding in made.applied]

    def wanted(finding: Finding, verdict: Verdict) -> bool:
        return may_write(finding, verdict, rules[finding.code].messages, unverified)

    decision = Decider(task.fixed, verify, wanted, examined.outcome).decide()
    teller = _Teller(task, decision, verification, rules)
    problems = tuple(verification.problems(source)) if verification else ()
    return Settled(decision.outcome.text, teller.entries(), problems)


def _only_comments(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.only_comments


def may_write(
    finding: Finding, verdict: Verdict, messages: Sequence[str], unverified: bool
) -> bool:
    """DESIGN, "What may be written": certain unless refuted, plausible where it was shown."""
    certain = finding.fix is not None and finding.fix.certain
    if verdict.level is Level.REFUTED:
        return False
    if certain or unverified or verdict.level in (Level.EQUAL, Level.CLOSE):
        return True
    documented = any(re.search(message, verdict.before_failed) for message in messages)
    return verdict.level is Level.COMPILED and documented


@dataclass(frozen=True)
class _Teller:
    """Tells what became of the findings of one file."""

    task: Task
    decision: Decision
    verification: Verification | None
    rules: Mapping[str, type[Rule]]

    def entries(self) -> tuple[Entry, ...]:
        from pallas_fix.alone import Alone

        decision = self.decision
        alone = Alone(self.task, decision.outcome)
        fixed = [
            replace(
                self._entry(
                    finding, State.FIXED, verdict=verdict, case=self._case(finding, verdict)
                ),
                alone=partial(alone.text, finding),
            )
            for finding, verdict in zip(decision.outcome.applied, decision.verdicts, strict=True)
        ]
        withheld = {id(item.finding): item for item in decision.withheld}
        left = [
            self._withheld(withheld[id(finding)])
            if id(finding) in withheld
            else self._entry(finding, State.NOT_FIXED, reason=finding.reason or _IN_THE_WAY)
            for finding in decision.outcome.remaining
        ]
        return (*fixed, *left)

    def _withheld(self, item: Withheld) -> Entry:
        finding, verdict = item.finding, item.verdict
        if verdict.level is Level.REFUTED:
            reason = Reason(
                "refuted",
                f"the fix was tried and does not hold: {verdict.evidence}",
                "repair it by hand; if the case is right, please report it",
            )
            return self._entry(finding, State.NOT_FIXED, verdict=verdict, reason=reason)
        case = self._case(finding, verdict)
        preview = b""
        if item.text is not None:
            from pallas_fix.report.diff import hunks

            encode = self.task.source.encode
            preview = b"".join(hunks(encode(self.decision.outcome.text), encode(item.text)))
        reason = _why_shown(verdict, self._way_to_a_verdict(verdict, case))
        return self._entry(
            finding, State.SHOWN, verdict=verdict, reason=reason, preview=preview, case=case
        )

    def _way_to_a_verdict(self, verdict: Verdict, case: str) -> str:
        """What would have a fix verified; empty with `--no-verify`."""
        if self.verification is None:
            return ""
        if case:
            return "declare a case"
        if _has_cases(verdict):
            return "repair what fails there"
        if not self.verification.imports(self.task.source):
            return "see that the file can be imported"
        return "declare a case for what launches it"

    def _entry(
        self,
        finding: Finding,
        state: State,
        *,
        verdict: Verdict | None = None,
        reason: Reason | None = None,
        preview: bytes = b"",
        case: str = "",
    ) -> Entry:
        name = self.rules[finding.code].name
        return Entry(finding, name, state, verdict, reason, preview, case)

    def _case(self, finding: Finding, verdict: Verdict) -> str:
        """The line to paste, where no case reached a fix and another one may."""
        if self.verification is None or verdict.level is not Level.UNVERIFIED:
            return ""
        if _only_comments(finding):
            return ""
        if _has_cases(verdict) or not self.verification.imports(self.task.source):
            return ""
        from pallas_fix.facts import Facts
        from pallas_fix.verification import case_line

        source = self.task.source
        module = Facts.parse(source.text, str(source.path))
        return case_line(module, finding, self.verification.targets(source))


def _has_cases(verdict: Verdict) -> bool:
    """True if more than commands of the user speak of a fix."""
    return any(not case.is_command for case in verdict.cases)


_IN_THE_WAY = Reason(
    "in-the-way", "its edits meet those of another fix of this run", "run pallas-fix again"
)


_INSTALL = re.compile(r"stage not available: (install \S+)")


def _why_shown(verdict: Verdict, way: str) -> Reason:
    what = "more than the code alone decides whether it is right"
    if not way:
        return Reason(
            "plausible",
            f"{what}, and nothing verified it: --no-verify",
            "run without --no-verify, or add --unverified to write it",
        )
    if verdict.level is Level.UNVERIFIED:
        return Reason(
            "plausible",
            f"{what}, and nothing verified it: {verdict.evidence}",
            f"{way}, or add --unverified to write it",
        )
    messages = [stage.message for case in verdict.cases for stage in case.after.stages]
    installs = [found[1] for message in messages if (found := _INSTALL.search(message))]
    way_out = installs[0] if installs else "run where there is such a chip"
    return Reason(
        "plausible",
        f"{what}: {verdict.evidence}; numbers were not compared",
        f"{way_out}, or add --unverified to write it",
    )
