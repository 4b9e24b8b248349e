"""What other programs make of the documents of a run: the texts that their fixes give."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pallas_fix.config import Options
from pallas_fix.files import Source
from pallas_fix.projects import Projects
from pallas_fix.report.account import Account
from pallas_fix.rules import all_rules
from pallas_fix.run import Request, Run

JAX = "0.12.0.1"


def checked(*paths: Path, given: Source | None = None) -> Account:
    """The account of `apply --check --no-verify --unverified`."""
    rules = all_rules()
    projects = Projects(paths, Options(jax=JAX), rules)
    request = Request(projects, paths, given, write=False, verify=False, unverified=True)
    return Run(request, rules).go()


def sarif_fixed(text: str, fix: dict[str, Any]) -> str:
    """`text` after a fix of a SARIF result; lines end as Python ends them."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    [change] = fix["artifactChanges"]
    made = []
    at = 0
    for one in change["replacements"]:
        region = one["deletedRegion"]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        assert at <= start <= end <= len(text)
        made += [text[at:start], one["insertedContent"]["text"]]
        at = end
    return "".join([*made, text[at:]])


def suggested(text: str, suggestions: Sequence[dict[str, Any]]) -> str:
    """`text` after the one suggestion of a diagnostic; lines end at newline characters."""
    [suggestion] = suggestions
    lines = text.split("\n")
    first, last = (suggestion["range"][name]["line"] for name in ("start", "end"))
    assert 1 <= first <= last <= len(lines)
    end = "\r" if lines[last - 1].endswith("\r") else ""
    return "\n".join([*lines[: first - 1], suggestion["text"] + end, *lines[last:]])
