"""Comments by which a file keeps rules away: `# pallas-fix: ignore[CODE]` and `skip-file`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Reason, Rule

_SKIP = re.compile(rb"(?:[^\r\n]*(?:\r\n|\r|\n)){0,9}[ \t]*#[ \t]*pallas-fix:[ \t]*skip-file\b")
_IGNORE = re.compile(r"#\s*pallas-fix:\s*ignore\b(?:\s*\[([^\]]*)\])?")


def skips_file(data: bytes) -> bool:
    """True if one of the first ten lines is a comment `# pallas-fix: skip-file`."""
    return b"skip-file" in data and _SKIP.match(data) is not None


def heeding(rule: Rule, no_fix: Reason | None = None) -> Rule:
    """`rule`, silent about findings on whose first or last line the file says `ignore`.

    With `no_fix`, its findings come with that reason in the place of a fix.
    """

    class Heeding(Rule):
        code = rule.code
        name = rule.name
        triggers = rule.triggers
        messages = rule.messages
        applies = rule.applies

        def find(self, module: Facts) -> Iterator[Finding]:
            ignored = _ignored(module.text)
            for finding in rule.find(module):
                lines = {finding.span.line, finding.span.end_line}
                if any(finding.code.startswith(ignored.get(line, ())) for line in lines):
                    continue
                yield (
                    replace(finding, fix=None, reason=no_fix) if no_fix and finding.fix else finding
                )

    return Heeding(rule.options)


@lru_cache(maxsize=4)
def _ignored(text: str) -> dict[int, tuple[str, ...]]:
    """The codes, or their prefixes, that are ignored on each line; an empty one is all."""
    lines: dict[int, tuple[str, ...]] = {}
    if "pallas-fix:" not in text:
        return lines
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            match = _IGNORE.match(token.string) if token.type == tokenize.COMMENT else None
            if match:
                codes = (match[1] or "").replace(",", " ").split()
                lines[token.start[0]] = tuple(codes) or ("",)
    except (tokenize.TokenError, SyntaxError):
        return lines
    return lines
