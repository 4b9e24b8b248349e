"""The text that one fix of a file gives, alone: what a reviewer gets who takes no other."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pallas_fix.decide import key
from pallas_fix.examine import Task
from pallas_fix.files import SourceError
from pallas_fix.fixpoint import Outcome
from pallas_fix.rules.base import Finding


@dataclass
class Alone:
    """The fixes that are made in `outcome`, each by itself. Nothing is done until one is asked."""

    task: Task
    outcome: Outcome

    def text(self, finding: Finding) -> str | None:
        """The file as it was read, with the fix of one applied finding and no other.

        None where there is no such text: the finding was only there after another fix.
        """
        if len(self.outcome.applied) == 1:
            return self.outcome.text
        origin = self._origins.get(id(finding))
        if origin is None or origin.fix is None:
            return None
        from pallas_fix.rewrite import RewriteError, apply_fixes

        try:
            text = apply_fixes(self.task.source.text, [origin.fix]).text
            with warnings.catch_warnings(action="ignore"):
                ast.parse(text)
            self.task.source.encode(text)
        except (RewriteError, SourceError, SyntaxError, ValueError, RecursionError):
            return None
        return text

    @cached_property
    def _origins(self) -> dict[int, Finding]:
        """What each applied finding was in the file as it was read, by the id of the finding.

        Those of the first pass are found as they were. Others have had to wait for it, and lines
        have moved since: they are told apart by their order among those of the same key.
        """
        found = [one for one in self._found() if one.fix is not None]
        origins: dict[int, Finding] = {}
        waited = []
        for finding in self.outcome.applied:
            if finding in found:
                origins[id(finding)] = found.pop(found.index(finding))
            else:
                waited.append(finding)
        for finding in sorted(waited, key=lambda finding: finding.span):
            origin = next((one for one in found if key(one) == key(finding)), None)
            if origin is not None:
                found.remove(origin)
                origins[id(finding)] = origin
        return origins

    def _found(self) -> Iterator[Finding]:
        try:
            remaining = self.task.fixed(lambda finding: False).remaining
        except SourceError:
            return
        yield from sorted(remaining, key=lambda finding: finding.span)
