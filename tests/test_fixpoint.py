"""Passes until nothing changes, and what becomes of rules that do not keep their word."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from pallas_fix import rewrite
from pallas_fix.edits import AddImport, Code, Edit, Fix, InsertAfter, Replace, Span
from pallas_fix.facts import Facts
from pallas_fix.fixpoint import LIMIT, Outcome, fix_text
from pallas_fix.rules.base import Finding, Reason, Rule

Make = Callable[[Facts, ast.Name], tuple[Edit, ...] | Reason | None]


def rule(make: Make, triggers: tuple[str, ...] = ("old",), code: str = "TST001") -> Rule:
    """A rule about names; `make` gives the edits, or the reason why there are none."""

    class Fake(Rule):
        name = "fake"

        def find(self, module: Facts) -> Iterator[Finding]:
            for node in ast.walk(module.tree):
                made = make(module, node) if isinstance(node, ast.Name) else None
                if isinstance(node, ast.Name) and made is not None:
                    fix = Fix(made, certain=True) if isinstance(made, tuple) else None
                    reason = made if isinstance(made, Reason) else None
                    yield Finding(code, module.span(node), f"`{node.id}`", fix, reason)

    Fake.code, Fake.triggers = code, triggers
    return Fake()


def renames(old: str, new: str, code: str = "TST001") -> Rule:
    """A rule that replaces a name by some code."""
    return rule(
        lambda m, n: (Replace(m.span(n), Code(new)),) if n.id == old else None, (old,), code
    )


def fixed(text: str, *rules: Rule, accept: Callable[[Finding], bool] = lambda _: True) -> Outcome:
    """The outcome for a text."""
    return fix_text(text, "kernel.py", rules, accept)


def test_every_finding_is_fixed_and_told() -> None:
    outcome = fixed("x = old + old\n", renames("old", "new"))

    assert outcome.text == "x = new + new\n"
    assert [finding.span for finding in outcome.applied] == [Span(1, 4, 1, 7), Span(1, 10, 1, 13)]
    assert (outcome.remaining, outcome.bug) == ((), "")


def test_a_fix_may_make_work_for_another_rule() -> None:
    first, second = renames("old", "newer", "TST001"), renames("newer", "newest", "TST002")

    outcome = fixed("x = old\n", first, second)

    assert outcome.text == "x = newest\n"
    assert [finding.code for finding in outcome.applied] == ["TST001", "TST002"]


def test_fixes_that_meet_take_turns() -> None:
    def insert(module: Facts, node: ast.Name) -> tuple[Edit, ...] | None:
        statement = next(s for s in module.tree.body if s.lineno == node.lineno)
        after = module.tree.body[module.tree.body.index(statement) + 1 :][:1]
        done = bool(after) and isinstance(after[0], ast.Assert)
        if not node.id.startswith("old") or done:
            return None
        return (InsertAfter(module.span(statement), Code(f"assert {node.id.upper()}")),)

    names = [f"old{number}" for number in range(3 * LIMIT)]
    text = "".join(f"{name}\n" for name in names)
    crowded = rule(lambda m, n: insert(m, n) and (*(insert(m, n) or ()), AddImport("jax")))

    outcome = fixed(text, crowded)

    assert outcome.bug == ""
    assert outcome.text == "import jax\n\n" + "".join(
        f"{name}\nassert {name.upper()}\n" for name in names
    )


def test_many_fixes_of_one_statement_take_as_many_passes_as_they_need() -> None:
    count = 2 * LIMIT

    def nested(module: Facts, node: ast.Name) -> tuple[Edit, ...] | None:
        calls = [c for c in ast.walk(module.tree) if isinstance(c, ast.Call)]
        call = next((c for c in calls if c.func is node), None)
        if call is None or node.id != "old":
            return None
        return (Replace(module.span(call), Code("new($a)", {"a": module.span(call.args[0])})),)

    outcome = fixed("old(" * count + "0" + ")" * count + "\n", rule(nested))

    assert outcome.bug == ""
    assert outcome.text == "new(" * count + "0" + ")" * count + "\n"


def test_what_is_not_accepted_or_has_no_fix_remains() -> None:
    reason = Reason("why", "because", "by hand")
    other = rule(lambda _, n: reason if n.id == "older" else None, code="TST002")

    outcome = fixed(
        "x = old, older\n", renames("old", "new"), other, accept=lambda f: f.code != "TST001"
    )

    assert outcome.text == "x = old, older\n"
    assert [(f.code, f.reason) for f in outcome.remaining] == [("TST001", None), ("TST002", reason)]


def test_a_text_without_triggers_is_not_parsed() -> None:
    assert fixed("x = (", renames("old", "new")) == Outcome("x = (", (), ())


def test_only_rules_with_a_trigger_are_run() -> None:
    def crash(_: Facts, __: ast.Name) -> None:
        raise AssertionError

    outcome = fixed("x = old\n", rule(crash, ("absent",), "TST002"), renames("old", "new"))

    assert (outcome.text, outcome.bug) == ("x = new\n", "")


@pytest.mark.parametrize(
    ("text", "error"),
    [("old = (\n", SyntaxError), ("old\0\n", (SyntaxError, ValueError))],
)
def test_a_text_that_is_no_python_is_told(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        fixed(text, renames("old", "new"))


def test_a_rule_that_fails_is_named_and_hides_no_other() -> None:
    def crash(_: Facts, __: ast.Name) -> None:
        raise KeyError("lost")

    outcome = fixed("x = old\n", rule(crash, code="TST002"), renames("old", "new"))

    assert outcome.text == "x = old\n"
    assert outcome.bug.startswith("TST002 (fake) failed: KeyError: 'lost' (test_fixpoint.py:")
    assert [finding.code for finding in outcome.remaining] == ["TST001"]


def test_a_rule_that_fails_in_a_later_pass_gives_the_text_back() -> None:
    def crash(module: Facts, _: ast.Name) -> None:
        if "new" in module.text:
            raise KeyError

    outcome = fixed("x = old\n", rule(crash, ("x",), "TST002"), renames("old", "new"))

    assert outcome.text == "x = old\n"
    assert outcome.applied == ()
    assert outcome.bug.startswith("TST002 (fake) failed: KeyError")


def broken(make: Make) -> str:
    """What is said of a rule about the name `old` whose fix is wrong."""
    text = "import os\n\nx = old\n\ndef f():\n    import sys\n"
    outcome = fixed(text, rule(lambda m, n: make(m, n) if n.id == "old" else None))
    assert (outcome.text, outcome.applied, len(outcome.remaining)) == (text, (), 1)
    return outcome.bug


def test_a_fix_that_changes_nothing() -> None:
    assert broken(lambda m, n: (Replace(m.span(n), Code("old")),)) == (
        "TST001: the fix changes nothing"
    )


def test_a_finding_that_comes_back() -> None:
    def elsewhere(module: Facts, _: ast.Name) -> tuple[Edit, ...]:
        statement = next(s for s in module.tree.body if isinstance(s, ast.Assign))
        return (InsertAfter(module.span(statement), Code("y = 1")),)

    assert broken(elsewhere) == "TST001: line 3 is found again after it was fixed"


def test_a_fix_that_never_settles() -> None:
    grows = rule(lambda m, n: (Replace(m.span(n), Code(f"{n.id}_")),) if "old" in n.id else None)

    outcome = fixed("x = old\n", grows)

    assert outcome.text == "x = old\n"
    assert outcome.bug == f"TST001: after {LIMIT} passes there is as much to fix as before"


def test_an_edit_without_a_node() -> None:
    said = broken(lambda m, n: (Replace(Span(9, 0, 9, 1), Code("new")),))

    assert said == "TST001: Replace at 9:0-9:1: no expression there"


def test_a_result_that_does_not_parse() -> None:
    calls = rule(lambda m, n: (Replace(m.span(n), Code("new()")),) if n.id == "old" else None)

    outcome = fixed("old = 1\n", calls)

    assert outcome.text == "old = 1\n"
    assert outcome.bug.startswith("TST001: the result does not parse: SyntaxError: cannot assign")


def test_a_result_that_does_not_compile() -> None:
    said = broken(lambda m, n: (Replace(m.span(n), Code("(yield)")),))

    assert said.startswith("TST001: the result does not compile: SyntaxError: 'yield' outside")


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        ("import os\n\ndef f():\n    import sys\n    new\n", "line 3 is lost"),
        ("import os\n\nx = 1\n\ndef f():\n    new\n", "the import of sys as sys is lost"),
        ("\nx = 1\n\ndef f():\n    import sys\n    new\n", "line 1 is lost"),
    ],
)
def test_what_no_edit_touches_must_not_change(
    damaged: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import os\n\nx = 1\n\ndef f():\n    import sys\n    old\n"
    monkeypatch.setattr(rewrite, "apply_fixes", lambda *_: rewrite.Rewritten(damaged, (0,), ()))

    outcome = fixed(text, renames("old", "new"))

    assert outcome.text == text
    assert outcome.bug.startswith(f"TST001: {said}")


def test_nothing_heavy_is_imported_where_nothing_is_fixed() -> None:
    program = (
        "import sys\n"
        "from pallas_fix.fixpoint import fix_text\n"
        "from pallas_fix.rules import all_rules\n"
        "rules = [rule() for rule in all_rules().values()]\n"
        "fix_text('matmul_pop = wgmma = 1\\n', 'x.py', rules, lambda finding: True)\n"
        "print(sorted({'libcst', 'jax'} & sys.modules.keys()))\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
