"""The account of a run, as people and as programs read it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pallas_fix.edits import Fix, Span
from pallas_fix.files import Source, SourceError
from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.report.json import document
from pallas_fix.report.lines import Moves
from pallas_fix.report.printable import printable
from pallas_fix.report.text import Look, text
from pallas_fix.rules.base import Finding, Reason
from pallas_fix.verify.verdict import Level, Verdict

BEFORE = "a\nb\nc\nd\n"
AFTER = "new\na\nB\nd\n"
COMPILED = Verdict(Level.COMPILED, "compiled for tpu7x (libtpu 0.0.52)", (), "ValueError: got Ref")
UNVERIFIED = Verdict(Level.UNVERIFIED, "there is no case for it")


def finding(
    line: int, *, certain: bool | None = True, message: str = "`acc` is in VMEM"
) -> Finding:
    fix = None if certain is None else Fix((), certain)
    reason = Reason("rank", "its rank is 3", "use one of rank 2") if certain is None else None
    return Finding("TPU001", Span(line, 4, line, 9), message, fix, reason)


def account(*entries: Entry, written: bool = True, after: str = AFTER) -> Account:
    source = Source(Path("k.py"), BEFORE.encode())
    file = FileAccount(Path("k.py"), source, after, entries)
    return Account((file,), (), 3, written, True, "not run on hardware: no GPU or TPU found")


FIXED = Entry(finding(2), "vmem-accumulator", State.FIXED, COMPILED)
NOT_FIXED = Entry(
    finding(4, certain=None),
    "vmem-accumulator",
    State.NOT_FIXED,
    reason=finding(4, certain=None).reason,
)
SHOWN = Entry(
    finding(4, certain=False),
    "vmem-accumulator",
    State.SHOWN,
    UNVERIFIED,
    Reason("plausible", "nothing verified it", "declare a case"),
    b"@@ -1 +1 @@\n-\x1b[31m\n+x\r\n",
    "# pallas-fix: case f(x=...)",
)


PLAIN = Look()


def said(account: Account, look: Look = PLAIN) -> list[str]:
    return list(text(account, look))


class TestStatistics:
    def test_by_rule_and_outcome_the_largest_first(self) -> None:
        plain = Entry(finding(3, certain=None), "vmem-accumulator", State.NOT_FIXED)
        other = replace(NOT_FIXED, rule="a", finding=replace(NOT_FIXED.finding, code="GPU001"))
        mixed = account(FIXED, NOT_FIXED, SHOWN, NOT_FIXED, other, plain)
        assert said(mixed, Look(statistics=True))[:6] == [
            "2  TPU001  vmem-accumulator  not fixed (rank)",
            "1  GPU001  a                 not fixed (rank)",
            "1  TPU001  vmem-accumulator  fixed (compiled)",
            "1  TPU001  vmem-accumulator  not fixed",
            "1  TPU001  vmem-accumulator  not written (plausible)",
            "",
        ]
        first, *_ = json.loads(document(mixed))["statistics"]
        assert first == {
            "code": "TPU001",
            "name": "vmem-accumulator",
            "state": "not fixed",
            "detail": "rank",
            "count": 2,
        }

    def test_what_would_be_fixed(self) -> None:
        [line, *_] = said(account(FIXED, written=False), Look(statistics=True))
        assert line == "1  TPU001  vmem-accumulator  would be fixed (compiled)"

    def test_problems_are_shown_all_the_same(self) -> None:
        problem = SourceError(Path("x.py"), 3, "no text")
        lines = said(replace(account(FIXED), problems=(problem,)), Look(statistics=True))
        assert lines[0] == "x.py:3: error: no text"


def test_a_known_or_unchanged_finding_is_not_nothing() -> None:
    clean = replace(account(), files=(), left_alone=2, notes=("2 findings known: left alone",))
    assert said(clean)[:2] == ["nothing else found in 3 files", "2 findings known: left alone"]
    assert clean.status == 0


def test_what_a_baseline_knows_from_now_on_is_done() -> None:
    recorded = replace(account(NOT_FIXED), recorded=True)
    assert (account(NOT_FIXED).status, recorded.status) == (1, 0)
    problem = SourceError(Path("x.py"), None, "gone")
    assert replace(recorded, problems=(problem,)).status == 2


class TestText:
    def test_what_was_fixed_and_how_it_is_known(self) -> None:
        assert said(account(FIXED)) == [
            "k.py:3:5: TPU001 [vmem-accumulator] `acc` is in VMEM",
            "    fixed: compiled for tpu7x (libtpu 0.0.52)",
            "    before: ValueError: got Ref",
            "",
            "1 fixed in 1 file (1 compiled)",
            "not run on hardware: no GPU or TPU found",
        ]

    def test_what_was_not_fixed_why_and_the_way_out(self) -> None:
        assert said(account(NOT_FIXED))[:3] == [
            "k.py:4:5: TPU001 [vmem-accumulator] `acc` is in VMEM",
            "    not fixed: its rank is 3 (rank)",
            "    way out: use one of rank 2",
        ]

    def test_what_is_only_shown(self) -> None:
        assert said(account(SHOWN, after=BEFORE)) == [
            "k.py:4:5: TPU001 [vmem-accumulator] `acc` is in VMEM",
            "    not written: nothing verified it (plausible)",
            "    way out: declare a case",
            "    to verify it, fill in and add this line:",
            "        # pallas-fix: case f(x=...)",
            "    @@ -1 +1 @@",
            "    -\\x1b[31m",
            "    +x\\r",
            "",
            "1 not fixed (1 plausible)",
            "not run on hardware: no GPU or TPU found",
        ]

    def test_a_run_that_writes_nothing_says_would(self) -> None:
        lines = said(account(FIXED, NOT_FIXED, written=False))
        assert lines[0].startswith("k.py:2:5:")
        assert "    would fix: compiled for tpu7x (libtpu 0.0.52)" in lines
        assert "1 would be fixed in 1 file (1 compiled)" in lines

    def test_nothing_found(self) -> None:
        clean = replace(account(), files=())
        assert said(clean) == ["nothing found in 3 files", clean.hardware]
        assert said(replace(clean, looked_at=0))[0] == "there is no Python file to look at"

    def test_what_could_not_be_read_is_not_said_to_be_clean(self) -> None:
        clean = replace(account(), files=())
        broken = replace(clean, problems=(SourceError(Path("x.py"), 3, "no text"),))
        assert said(broken)[2:4] == ["1 problem: see above", "nothing found in what could be read"]
        assert not [line for line in said(replace(clean, interrupted=True)) if "nothing" in line]

    def test_problems_come_first_and_hide_nothing(self) -> None:
        problem = SourceError(Path("bad\x1b[2J.py"), 3, "is no Python", "Traceback")
        lines = said(replace(account(FIXED), problems=(problem,)))
        assert lines[0] == "bad\\x1b[2J.py:3: error: is no Python"
        assert "Traceback" not in "".join(lines)
        assert "    Traceback" in said(replace(account(), problems=(problem,)), Look(verbosity=1))

    def test_quiet_leaves_what_is_left_to_do(self) -> None:
        lines = said(account(FIXED, NOT_FIXED), Look(verbosity=-1))
        assert not any("fixed: compiled" in line for line in lines)
        assert any("not fixed: its rank is 3" in line for line in lines)
        gate = said(account(FIXED, written=False), Look(verbosity=-1))
        assert "`acc` is in VMEM" in gate[0]

    @pytest.mark.parametrize("width", [40, 80, 200])
    def test_lines_are_broken_at_the_width(self, width: int) -> None:
        words = "an accumulator that " + "has to outlive the scope " * 8
        long = replace(FIXED, finding=finding(2, message=words))
        lines = said(account(long), Look(width=width))
        assert max(map(len, lines)) <= width
        assert " ".join(" ".join(lines).split()).count("outlive the scope") == 8

    def test_colours_change_nothing_but_colours(self) -> None:
        import click

        plain = said(account(FIXED, NOT_FIXED, SHOWN), Look(width=60))
        coloured = said(account(FIXED, NOT_FIXED, SHOWN), Look(width=60, colour=True))
        assert coloured != plain
        assert [click.unstyle(line) for line in coloured] == plain


class TestStatus:
    @pytest.mark.parametrize(
        ("made", "status"),
        [
            (account(FIXED), 0),
            (account(FIXED, written=False), 1),
            (account(SHOWN, after=BEFORE), 1),
            (account(FIXED, NOT_FIXED), 1),
            (account(replace(FIXED, verdict=UNVERIFIED)), 1),
            (replace(account(replace(FIXED, verdict=UNVERIFIED)), verified=False), 0),
            (replace(account(FIXED), problems=(SourceError(Path("x"), None, "gone"),)), 2),
            (replace(account(), files=()), 0),
            (replace(account(FIXED), interrupted=True), 130),
        ],
    )
    def test_status(self, made: Account, status: int) -> None:
        assert made.status == status


def test_the_document_says_the_same() -> None:
    read = json.loads(document(account(FIXED, NOT_FIXED, SHOWN)))
    assert read["version"] == 1
    assert (read["status"], read["written"], read["looked_at"]) == (1, True, 3)
    [file] = read["files"]
    assert (file["path"], file["changed"]) == ("k.py", True)
    fixed, *left = file["findings"]
    assert (fixed["state"], fixed["level"], fixed["line"], fixed["column"]) == (
        "fixed",
        "compiled",
        3,
        5,
    )
    assert [entry["reason"]["code"] for entry in left] == ["rank", "plausible"]


@pytest.mark.parametrize("line", range(1, 6))
def test_lines_move_with_the_text(line: int) -> None:
    moves = Moves(BEFORE, AFTER)
    assert moves.forth(line) == {1: 2, 2: 3, 3: 4, 4: 4, 5: 5}[line]
    assert moves.back(line) == {1: 1, 2: 1, 3: 2, 4: 4, 5: 5}[line]
    assert Moves(BEFORE, BEFORE).forth(line) == line


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain é日", "plain é日"),
        ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
        ("a\u202eb\u2028c", "a\\u202eb\\u2028c"),
        ("a\tb\nc\r", "a    b\\nc\\r"),
        ("bad\udcff.py", "bad\\xff.py"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_nothing_that_a_terminal_obeys(given: str, shown: str) -> None:
    assert printable(given) == shown
