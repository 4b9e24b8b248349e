"""Comments that keep rules away: what they cover, what is wrong with them, and unused ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pallas_fix.comments import heeding, read, wrong
from pallas_fix.edits import Code, Fix, Replace, SetComment, Span
from pallas_fix.examine import Task, examine
from pallas_fix.facts import Facts
from pallas_fix.files import Source
from pallas_fix.fixpoint import fix_text
from pallas_fix.rewrite import apply_fixes
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Finding, Options, Reason, Rule
from pallas_fix.rules.unused_ignore import UnusedIgnore

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
