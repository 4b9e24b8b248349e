"""Comments that keep rules away: what they cover, what is wrong with them, and unused ones."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from console import Console
from kernels import MXU
from pallas_fix.comments import heeding, read, wrong
from pallas_fix.edits import Code, Fix, Replace, SetComment, Span
from pallas_fix.examine import Task, examine
from pallas_fix.facts import Facts
from pallas_fix.files import Source
from pallas_fix.fixpoint import fix_text
from pallas_fix.ignoring import Misplaced, is_reason, with_ignores
from pallas_fix.rewrite import apply_fixes
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Finding, Options, Reason, Rule
from pallas_fix.rules.unused_ignore import UnusedIgnore

OPEN = (Path(__file__).parent.parent / "examples/gpu_wgmma_scale.py").read_bytes()
KNOWN = ("GPU001", "GPU002", "TPU001", "TPU002")

COVERED = {
    "x = 1  # pallas-fix: ignore[A]": [1],
    "x = 1  # noqa  # pallas-fix: ignore[A] why  # type: ignore": [1],
    "x = (\n  1,  # pallas-fix: ignore[A]\n)": [2],
    "# pallas-fix: ignore[A]\nx = (\n  1,\n)\ny = 2": [2, 3, 4],
    "# pallas-fix: ignore[A]\n# more words\n# and more\nx = 1": [4],
    "# pallas-fix: ignore[A]\n\nx = 1": [],
    "# pallas-fix: ignore[A]": [],
    "x = (\n  # pallas-fix: ignore[A]\n  1,\n  2,\n)": [3],
    "x = (\n  # pallas-fix: ignore[A]\n  # more\n\n  1,\n)": [],
    "# pallas-fix: ignore[A]\ndef f(\n  a,\n):\n  return a": [2, 3, 4],
    "# pallas-fix: ignore[A]\n@g(\n  1)\n@h\ndef f():\n  return 1": [2, 3, 4, 5],
    "@g\n# pallas-fix: ignore[A]\n@h\ndef f():\n  return 1": [3, 4],
    "if x:\n  y = 1\n  # pallas-fix: ignore[A]\nelse:\n  y = 2": [4],
    'x = """\n# pallas-fix: ignore[A]\n"""': [],
    'x = f"""\n{1}\n"""  # pallas-fix: ignore[A]': [3],
    "x = 1; y = 2  # pallas-fix: ignore[A]": [1],
    "# see `# pallas-fix: ignore[A]`\nx = 1": [],
    "x = \\\n  1  # pallas-fix: ignore[A]": [2],
}


@pytest.fixture
def console(
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Console:
    """The command line, in a project of its own."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "requirements.txt").write_text("jax==0.12.0.1\n")
    monkeypatch.chdir(tmp_path)
    return Console(capsysbinary, monkeypatch)


class TestReading:
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize(("text", "lines"), COVERED.items())
    def test_the_lines_that_a_comment_covers(self, text: str, lines: list[int], end: str) -> None:
        ignores = read(text.replace("\n", end)).ignores
        covered = [
            line for ignore in ignores for line in range(1, 10) if ignore.covers(finding(line))
        ]
        assert covered == lines

    def test_codes_and_the_reason(self) -> None:
        text = "x = 1  #pallas-fix:ignore [TPU001,GPU] see #12, it is old # noqa\n"
        [ignore] = read(text).ignores
        assert (ignore.codes, ignore.reason) == (("TPU001", "GPU"), "see #12, it is old")
        assert text[ignore.span.column : ignore.span.end_column].endswith("it is old")

    def test_a_byte_order_mark_counts_in_no_column(self) -> None:
        [ignore] = read("\ufeff# pallas-fix: ignore[A]\nx = 1\n").ignores
        assert ignore.span == Span(1, 0, 1, 23)

    def test_a_text_that_does_not_end(self) -> None:
        assert len(read("x = 1  # pallas-fix: ignore[A]\ny = (\n").ignores) == 1

    @pytest.mark.parametrize(
        ("comment", "message"),
        [
            ("# pallas-fix: ignore", "an ignore names the codes of the rules that it is about"),
            ("# pallas-fix: ignore[] reason", "# pallas-fix: ignore[GPU001] reason"),
            ("# pallas-fix: ignore[TPU001", "an ignore names the codes"),
            ("# pallas-fix: ignore TPU001", "an ignore names the codes"),
            ("# pallas-fix: ignore[TPU01]", "no rule is called 'TPU01'; did you mean 'TPU001'?"),
            ("# pallas-fix: ignore[tpu001]", "no rule is called 'tpu001'"),
            ("# pallas-fix: ignroe[TPU001]", "means nothing; did you mean 'ignore'?"),
            ("# pallas-fix: off", "means nothing; write case, ignore or skip-file"),
            ("# pallas-fix:", "means nothing; write case, ignore or skip-file"),
            ("# pallas-fix: skip-file", "has no effect here: give it one of the first ten lines"),
        ],
    )
    def test_what_cannot_be_followed(self, comment: str, message: str) -> None:
        [(line, found)] = wrong(f"x = 1\n{comment}\n", KNOWN)
        assert line == 2
        assert message in found

    @pytest.mark.parametrize(
        "comment",
        [
            "# pallas-fix: ignore[TPU001, GPU]",
            "# pallas-fix: case f()",
            "# as pallas-fix: says",
            "# write `# pallas-fix: ignore`",
            "# use # pallas-fix: something",
        ],
    )
    def test_what_is_right(self, comment: str) -> None:
        assert list(wrong(f"x = 1\n{comment}\n", KNOWN)) == []


def finding(line: int, end_line: int | None = None, code: str = "A1") -> Finding:
    reason = Reason("no", "no", "no")
    return Finding(code, Span(line, 0, end_line or line, 1), "m", None, reason)


class Fake(Rule):
    """Finds every name `bad`."""

    code = "TPU001"
    name = "fake"
    triggers = ("bad",)

    def find(self, module: Facts) -> Iterator[Finding]:
        for statement in module.tree.body:
            span = module.span(statement)
            if module.source(statement) == "bad":
                fix = Fix((Replace(span, Code("good")),), certain=True)
                yield Finding(self.code, span, "bad", fix)


def fixed(text: str) -> str:
    """`text` after the rules that the tests replace, and that for unused comments."""
    rules = [heeding(rule()) for rule in (Fake, UnusedIgnore)]
    outcome = fix_text(text, "k.py", rules, lambda finding: True)
    assert outcome.bug == ""
    return outcome.text


class TestUnused:
    @pytest.fixture(autouse=True)
    def rules(self, monkeypatch: pytest.MonkeyPatch) -> None:
        known = {"TPU001": Fake, "IGN001": UnusedIgnore, "GPU001": Never, "TPU002": Never}
        monkeypatch.setattr("pallas_fix.rules.all_rules", lambda: known)

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("bad  # pallas-fix: ignore[TPU001]\n", None),
            ("# pallas-fix: ignore[TPU] why\nbad\n", None),
            ("x = 1  # pallas-fix: ignore[TPU001] why\n", "x = 1\n"),
            ("x = 1  # noqa  # pallas-fix: ignore[TPU001] why\n", "x = 1  # noqa\n"),
            ("x = 1  # pallas-fix: ignore[TPU001] why  # noqa\n", "x = 1  # noqa\n"),
            (
                "x = 1  # pallas-fix: ignore[TPU001]  # a  # pallas-fix: ignore[GPU001]\n",
                "x = 1  # a\n",
            ),
            ("# pallas-fix: ignore[TPU001]\nx = 1\n", "x = 1\n"),
            ("if x:\n\t# pallas-fix: ignore[GPU001]\n\tpass\n", "if x:\n\tpass\n"),
            ("x = 1\r\n# pallas-fix: ignore[TPU001]\r\nx = 2\r\n", "x = 1\r\nx = 2\r\n"),
            ("x = 1\n# pallas-fix: ignore[TPU001]", "x = 1\n"),
            ("x = 1 \t # pallas-fix: ignore[TPU001] \n", "x = 1\n"),
            ("bad  # pallas-fix: ignore[GPU001,TPU001]\n", "bad  # pallas-fix: ignore[TPU001]\n"),
            (
                "bad  #  pallas-fix:ignore[GPU001 TPU001 TPU002] why not\n",
                "bad  # pallas-fix: ignore[TPU001] why not\n",
            ),
            ("bad\nx = 1  # pallas-fix: ignore[TPU001]\n", "good\nx = 1\n"),
            ("# pallas-fix: ignore[IGN001]\nx = 1  # pallas-fix: ignore[TPU001]\n", None),
            ("x = 1  # pallas-fix: ignore[XYZ]\n", None),
            ("x = 1  # pallas-fix: ignore\n", None),
            ("\ufeff# pallas-fix: ignore[TPU001]\nx = 1\n", "\ufeffx = 1\n"),
        ],
    )
    def test_they_go(self, before: str, after: str | None) -> None:
        wanted = before if after is None else after
        assert fixed(before) == wanted
        assert fixed(wanted) == wanted

    def test_a_comment_stays_that_hides_what_a_fix_uncovers(self) -> None:
        text = "x = 1\nbad  # pallas-fix: ignore[TPU001]\n"
        assert fixed(text) == text

    def test_nothing_is_known_where_a_rule_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Never, "find", lambda *_: 1 // 0)
        text = "never = 1  # pallas-fix: ignore[TPU001]\n"
        assert fixed(text) == text


class Never(Rule):
    """Finds nothing."""

    code = "GPU001"
    name = "never"
    triggers = ("never",)

    def find(self, module: Facts) -> Iterator[Finding]:
        return iter(())


ADDED = {
    "at the end of the line": ("x = 1\nbad\n", [2], "x = 1\nbad  # pallas-fix: ignore[A1] why\n"),
    "line ends": ("bad\r\nx\r\n", [1], "bad  # pallas-fix: ignore[A1] why\r\nx\r\n"),
    "no line end": ("bad", [1], "bad  # pallas-fix: ignore[A1] why"),
    "a mark": ("\ufeffbad\n", [1], "\ufeffbad  # pallas-fix: ignore[A1] why\n"),
    "blanks": ("bad   \n", [1], "bad   # pallas-fix: ignore[A1] why\n"),
    "another comment": ("bad  # noqa\n", [1], "bad  # noqa  # pallas-fix: ignore[A1] why\n"),
    "another ignore": (
        "bad  # pallas-fix: ignore[B1] because\n",
        [1],
        "bad  # pallas-fix: ignore[B1, A1] because\n",
    ),
    "an ignore above, without a reason": (
        "# pallas-fix: ignore[B1]\nbad\n",
        [2],
        "# pallas-fix: ignore[B1, A1] why\nbad\n",
    ),
    "an ignore that is wrong": (
        "bad  # pallas-fix: ignore\n",
        [1],
        "# pallas-fix: ignore[A1] why\nbad  # pallas-fix: ignore\n",
    ),
    "a case": (
        "bad  # pallas-fix: case f()\n",
        [1],
        "# pallas-fix: ignore[A1] why\nbad  # pallas-fix: case f()\n",
    ),
    "a long line": (
        f"if x:\n\tbad = {'x' * 70}\n",
        [2],
        f"if x:\n\t# pallas-fix: ignore[A1] why\n\tbad = {'x' * 70}\n",
    ),
    "a long line among longer ones": (
        f"bad = {'x' * 70}\n# {'x' * 120}\n",
        [1],
        f"bad = {'x' * 70}  # pallas-fix: ignore[A1] why\n# {'x' * 120}\n",
    ),
    "in a call": ("f(\n  1,\n  2)\n", [2], "f(\n  1,  # pallas-fix: ignore[A1] why\n  2)\n"),
    "a long line in a call": (
        f"f(\n  1,\n  {'x' * 80},\n)\n",
        [3],
        f"f(\n  1,\n  # pallas-fix: ignore[A1] why\n  {'x' * 80},\n)\n",
    ),
    "a string of several lines": (
        'x = """\n  """\n',
        [(1, 2)],
        'x = """\n  """  # pallas-fix: ignore[A1] why\n',
    ),
    "before a backslash": (
        "x = 1 + \\\n  2\n",
        [1],
        "# pallas-fix: ignore[A1] why\nx = 1 + \\\n  2\n",
    ),
    "after a backslash, on a long line": (
        f"if x:\n  y = 1 + \\\n    {'x' * 80}\n",
        [3],
        f"if x:\n  # pallas-fix: ignore[A1] why\n  y = 1 + \\\n    {'x' * 80}\n",
    ),
    "two on a line": ("bad\n", [1, 1], "bad  # pallas-fix: ignore[A1] why\n"),
    "an arm": (
        f"if x:\n  y\nelif {'x' * 80}:\n  y\n",
        [3],
        f"if x:\n  y\n# pallas-fix: ignore[A1] why\nelif {'x' * 80}:\n  y\n",
    ),
    "a decorated function": (
        f"@g\ndef {'f' * 80}(): pass\n",
        [2],
        f"@g\n# pallas-fix: ignore[A1] why\ndef {'f' * 80}(): pass\n",
    ),
}


class TestAdding:
    @pytest.mark.parametrize(("before", "places", "after"), ADDED.values(), ids=ADDED)
    def test_the_comment_has_its_place(
        self, before: str, places: list[int | tuple[int, int]], after: str
    ) -> None:
        spans = [(place, place) if isinstance(place, int) else place for place in places]
        findings = [finding(*span) for span in spans]
        assert with_ignores(before, findings, "why") == after
        assert with_ignores(after, [], "why") == after

    def test_several_codes_on_a_line(self) -> None:
        made = with_ignores("bad\n", [finding(1), finding(1, code="A0")])
        assert made == "bad  # pallas-fix: ignore[A0, A1]\n"

    def test_without_a_reason(self) -> None:
        assert with_ignores("bad\n", [finding(1)]) == "bad  # pallas-fix: ignore[A1]\n"

    def test_where_there_is_no_place(self) -> None:
        with pytest.raises(Misplaced, match="no place for a comment on line 2"):
            with_ignores("x = 1\n\n", [finding(2)])

    @pytest.mark.parametrize(
        ("reason", "good"),
        [("see #12: later", True), ("", True), ("é", True), ("a\nb", False), ("a # b", False)],
    )
    def test_what_is_a_reason(self, reason: str, good: bool) -> None:
        assert is_reason(reason) is good

    def test_all_that_is_left_is_ignored_once(self, console: Console) -> None:
        Path("k.py").write_bytes(OPEN)
        words = ("--add-ignore", "--reason", "later", "k.py")
        _, patch, _ = console.apply("--diff", *words)
        assert Path("k.py").read_bytes() == OPEN
        status, _, error = console.apply(*words)
        assert (status, "ignored from now on: GPU002 (1)" in error) == (0, True)
        written = Path("k.py").read_bytes()
        comment = b"  # pallas-fix: ignore[GPU002] later"
        assert b"* SCALE" + comment + b"\n" in written
        assert console.apply(*words)[0] == 0
        assert Path("k.py").read_bytes() == written
        fixed = console.apply("-", given=OPEN)[1]
        assert written == fixed.replace(b"* SCALE\n", b"* SCALE" + comment + b"\n")
        Path("k.py").write_bytes(OPEN)
        subprocess.run(["git", "apply", "-"], input=patch, check=True)
        assert Path("k.py").read_bytes() == written

    def test_standard_input(self, console: Console) -> None:
        status, out, _ = console.apply("--add-ignore", "-", given=OPEN)
        assert (status, out.count(b"# pallas-fix: ignore[GPU002]\n")) == (0, 1)

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--add-ignore", "--check"), "use --diff"),
            (("--reason", "x"), "--reason goes with --add-ignore"),
            (("--add-ignore", "--reason", "x\ny"), "--reason is one line of text"),
        ],
    )
    def test_wrong_usage(self, console: Console, words: tuple[str, ...], message: str) -> None:
        status, out, error = console.apply(*words, ".")
        assert (status, out) == (2, b"")
        assert message in error

    def test_a_reason_that_the_file_cannot_hold(self, console: Console) -> None:
        given = b"# coding: latin-1\n" + OPEN
        Path("k.py").write_bytes(given)
        status, _, error = console.apply("--add-ignore", "--reason", "日", "k.py")
        assert (status, Path("k.py").read_bytes()) == (2, given)
        assert "k.py:24: error: the fix needs a character" in error


class TestCommandLine:
    def test_an_unused_one_is_removed_and_not_verified(self, console: Console) -> None:
        comment = "  # pallas-fix: ignore[TPU001] old"
        Path("k.py").write_text(MXU.replace("acc_lhs(", f"acc_lhs({comment}\n            ", 1))
        status, _, error = console.call("apply", "--check", "k.py")
        assert (status, "IGN001 [unused-ignore] `ignore[TPU001]` hides nothing" in error) == (
            1,
            True,
        )
        status, _, error = console.call("apply", "k.py")
        assert status == 0
        assert Path("k.py").read_text() == MXU.replace("acc_lhs(", "acc_lhs(\n            ", 1)
        assert "add this line" not in error
        assert "only a comment changes, so there is nothing to verify" in error

    def test_it_can_be_deselected(self, console: Console) -> None:
        Path("k.py").write_text("x = 1  # pallas-fix: ignore[TPU001] old\n")
        assert console.apply("--check", "--ignore", "IGN", "k.py")[0] == 0
        assert console.apply("--check", "--select", "TPU", "k.py")[0] == 0

    def test_wrong_comments_end_with_2_and_the_rest_is_done(self, console: Console) -> None:
        Path("k.py").write_bytes(b"# pallas-fix: ignore\nx = 1\n" + OPEN)
        status, _, error = console.apply("k.py")
        assert status == 2
        assert "k.py:1: error: an ignore names the codes of the rules" in error
        assert "1 fixed in 1 file" in error


def test_wrong_comments_are_problems_of_the_file() -> None:
    source = Source(Path("k.py"), b"# pallas-fix: ignore\nx = 1  # pallas-fix: ignore[TPU01]\n")
    examined = examine(Task(source, tuple(all_rules().values()), Options()))
    assert [problem.line for problem in examined.problems] == [1, 2]
    assert examined.empty


def test_comments_are_set_beside_other_edits() -> None:
    text = "\ufeffa = [1,  # one\r\n     2]  # two\r\nb = 3  # three\r\n"
    fixes = [
        Fix((SetComment(Span(1, 9, 1, 14)), Replace(Span(1, 5, 1, 6), Code("10"))), True),
        Fix((SetComment(Span(2, 9, 2, 14), "# zwei"),), True),
        Fix((Replace(Span(1, 4, 2, 7), Code("[]")), SetComment(Span(3, 7, 3, 14))), True),
    ]
    made = apply_fixes(text, fixes)
    assert (made.applied, made.deferred) == ((0, 1), (2,))
    assert made.text == "\ufeffa = [10,\r\n     2]  # zwei\r\nb = 3  # three\r\n"
