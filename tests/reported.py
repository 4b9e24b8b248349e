"""Accounts, their documents, and what other programs make of these."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonschema.validators import validator_for

from pallas_fix.config import Options
from pallas_fix.edits import Fix, Span
from pallas_fix.files import Source, SourceError
from pallas_fix.projects import Projects
from pallas_fix.report import github, markdown, rdjson, sarif
from pallas_fix.report import json as json_format
from pallas_fix.report import text as text_format
from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Finding, Reason
from pallas_fix.run import Request, Run
from pallas_fix.verify.verdict import (
    CaseResult,
    Comparison,
    Level,
    Side,
    Stage,
    StageResult,
    Verdict,
)

JAX = "0.12.0.1"
ROOT = Path(__file__).parent.parent
SCHEMAS = {
    "sarif": ROOT / "tests/schemas/sarif-2.1.0.json",
    "rdjson": ROOT / "tests/schemas/rdjson.json",
    "json": ROOT / "docs/schema/pallas-fix-1.json",
}
DOCUMENTS: dict[str, Callable[[Account], str]] = {
    "text": text_format.document,
    "json": json_format.document,
    "sarif": sarif.document,
    "github": github.document,
    "rdjson": rdjson.document,
    "markdown": markdown.document,
}

BEFORE = "a = 1\nb = 2\nc = 3\n"
AFTER = "a = 1\nb = 4\nc = 3\n"

LADDER = tuple(StageResult(stage, True) for stage in list(Stage)[:5])
SIDE = Side(LADDER, frozenset(), ("CPU (emulated MXU)",), (), (), ("jax 0.12.0.1", "libtpu 0.0.52"))
CASE = CaseResult(
    "f(bf16[8,256]) @ tpu7x",
    "tpu7x",
    Side((StageResult(Stage.IMPORT, True), StageResult(Stage.TRACE, False, 0.1, "ValueError"))),
    SIDE,
    (Comparison(Stage.RUN, True, "CPU (emulated MXU)", ("seed 0", "seed 1")),),
)
EQUAL = Verdict(Level.EQUAL, "the same numbers, bit for bit", (CASE,), "ValueError: got Ref<vmem>")
REFUTED = Verdict(
    Level.REFUTED,
    "f still fails",
    (replace(CASE, after=CASE.before, compared=()),),
)


def finding(message: str = "`acc` is in VMEM", *, line: int = 2, fixed: bool = True) -> Finding:
    fix = Fix((), True) if fixed else None
    reason = None if fixed else Reason("rank", "its rank is 3", "use one of rank 2")
    return Finding("TPU001", Span(line, 0, line, 5), message, fix, reason, "kernel")


def account(*entries: Entry, path: str = "k.py", written: bool = False, **more: Any) -> Account:
    source = Source(Path(path), BEFORE.encode())
    after = AFTER if any(entry.state is State.FIXED for entry in entries) else BEFORE
    file = FileAccount(Path(path), source, after, entries)
    known: dict[str, Any] = {"looked_at": 3, "verified": True, "jax": "jax 0.12.0.1", **more}
    known.setdefault("hardware", "ran on CPU (emulated MXU)")
    known.setdefault("problems", ())
    return Account((file,) if entries else (), written=written, **known)


FIXED = Entry(finding(), "vmem-accumulator", State.FIXED, EQUAL, alone=lambda: AFTER)
SHOWN = Entry(
    finding(),
    "vmem-accumulator",
    State.SHOWN,
    Verdict(Level.UNVERIFIED, "there is no case for it"),
    Reason("plausible", "nothing verified it", "declare a case"),
    b"@@ -1 +1 @@\n-b = 2\n+b = 4\n",
    "# pallas-fix: case f(x=...)",
)
NOT_FIXED = Entry(
    finding(fixed=False),
    "vmem-accumulator",
    State.NOT_FIXED,
    reason=finding(fixed=False).reason,
)
TRIED = Entry(
    finding(),
    "vmem-accumulator",
    State.NOT_FIXED,
    REFUTED,
    Reason("refuted", "the fix was tried and does not hold", "repair it by hand"),
)
EVERY = (FIXED, SHOWN, NOT_FIXED, TRIED)
PROBLEM = SourceError(Path("broken.py"), 7, "is no Python 3.13 (invalid syntax)")


def valid(name: str, document: str) -> Any:
    """The JSON of a document, which its schema takes; a key that it does not know is an error."""
    schema = json.loads(SCHEMAS[name].read_text("utf-8"))
    if name == "json":
        schema = _closed(schema)
    kind = validator_for(schema)
    kind.check_schema(schema)
    content = json.loads(document)
    kind(schema).validate(content)
    return content


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    return closed | {"additionalProperties": False} if "required" in schema else closed


def results(account: Account) -> list[dict[str, Any]]:
    [run] = valid("sarif", sarif.document(account))["runs"]
    found: list[dict[str, Any]] = run["results"]
    return found


def diagnostics(account: Account) -> list[dict[str, Any]]:
    content = valid("rdjson", rdjson.document(account))
    assert content["source"] == {"name": "pallas-fix"}
    found: list[dict[str, Any]] = content["diagnostics"]
    return found


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
