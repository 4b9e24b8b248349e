"""IGN001: comments that tell rules to be silent, where they have nothing to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pallas_fix.comments import Ignore, read
from pallas_fix.edits import Fix, SetComment
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Rule


class UnusedIgnore(Rule):
    """A comment `# pallas-fix: ignore[...]` hides nothing.

    ## What it does
    It takes the codes that hide nothing out of the comment, and the comment away where no code is
    left. What else stands in the comment stays.

    ## Why it fails
    Nothing fails. But the comment would hide the next trouble on its lines, and it says of healthy
    code that it is not. It is judged by all rules, also by those that are not selected.

    ## Example
    ```python
    acc_ref[...] += x  # pallas-fix: ignore[TPU001] until the port to 0.12
    ```
    becomes, where TPU001 finds nothing on that line,
    ```python
    acc_ref[...] += x
    ```

    ## When it is not fixed
    It always is, but for a code that no rule has: that is an error.

    ## What to do by hand
    A comment after code speaks of its line, one on a line of its own of the statement below it,
    without an empty line between them. Move it to where the finding begins or ends.

    ## How it is verified
    Only a comment changes, so there is nothing to verify.
    """

    code = "IGN001"
    name = "unused-ignore"
    triggers = ("pallas-fix:",)

    def find(self, module: Facts) -> Iterator[Finding]:
        ignores = read(module.text).ignores
        if not ignores:
            return
        try:
            found = list(self._found(module))
        except Exception:
            # A rule that fails is told of where it runs for itself; here nothing is known then.
            return
        for ignore in ignores:
            unused = [code for code in ignore.codes if self._unused(code, ignore, found)]
            if unused:
                yield self._finding(ignore, unused)

    def _found(self, module: Facts) -> Iterator[Finding]:
        """What the other rules find, whatever the comments say."""
        from pallas_fix.rules import all_rules

        for rule in all_rules().values():
            if rule is not type(self) and any(word in module.text for word in rule.triggers):
                yield from rule(self.options).find(module)

    def _unused(self, code: str, ignore: Ignore, found: Sequence[Finding]) -> bool:
        """False also for a code that no rule has, and for that of this rule."""
        from pallas_fix.rules import all_rules

        known = [rule for rule in all_rules() if rule.startswith(code)]
        if not known or self.code in known:
            return False
        return not any(
            finding.code.startswith(code) and ignore.covers(finding) for finding in found
        )

    def _finding(self, ignore: Ignore, unused: Sequence[str]) -> Finding:
        left = [code for code in ignore.codes if code not in unused]
        reason = f" {ignore.reason}" if ignore.reason else ""
        text = f"# pallas-fix: ignore[{', '.join(left)}]{reason}" if left else ""
        what = "hides nothing" if ignore.first <= ignore.last else "stands above no statement"
        message = f"`ignore[{', '.join(unused)}]` {what}"
        fix = Fix((SetComment(ignore.span, text),), certain=True)
        return Finding(self.code, ignore.span, message, fix)
