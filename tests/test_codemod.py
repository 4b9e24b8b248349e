"""The rules as commands of libcst.tool."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
from libcst.codemod import CodemodContext

from pallas_fix import codemod
from pallas_fix.comments import heeding
from pallas_fix.edits import Code, Fix, Replace
from pallas_fix.facts import Facts
from pallas_fix.files import Source
from pallas_fix.fixpoint import fix_text
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Finding, Reason, Rule

ROOT = Path(__file__).parents[1]
RULES = [pytest.param(rule, id=rule.__name__) for rule in all_rules().values()]


class Fake(Rule):
    """Statements change.

    The rest of the documentation.
    """

    code = "TST001"
    name = "fake"
    triggers = ("old",)

    def find(self, module: Facts) -> Iterator[Finding]:
        for statement in module.tree.body:
            span, source = module.span(statement), module.source(statement)
            fix = Fix((Replace(span, Code("new")),), certain=source == "old")
            if source == "oldest":
                yield Finding(self.code, span, "too old", reason=Reason("age", "too late", "none"))
            elif source.startswith("old"):
                yield Finding(self.code, span, "old", fix)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> type[codemod.RuleCommand]:
    monkeypatch.setattr(codemod, "all_rules", lambda: {"TST001": Fake})
    monkeypatch.delitem(vars(codemod), "Fake", raising=False)
    made: type[codemod.RuleCommand] = codemod.Fake
    return made


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_a_command(rule: type[Rule]) -> None:
    command = getattr(codemod, rule.__name__)

    assert command.DESCRIPTION.startswith(f"{rule.code} {rule.name}: ")
    assert command is getattr(codemod, rule.__name__)


def test_there_are_no_other_commands() -> None:
    assert not hasattr(codemod, "Nothing")


def test_a_command_fixes_and_warns(command: type[codemod.RuleCommand]) -> None:
    context = CodemodContext(filename="kernel.py")
    tree = cst.parse_module(b"\xef\xbb\xbfold\r\nolder\r\noldest")

    made = command(context).transform_module(tree)

    assert made.bytes == b"\xef\xbb\xbfnew\r\nnew\r\noldest"
    assert context.warnings == ["kernel.py:3: TST001 too old (too late)"]


def test_a_command_can_make_certain_fixes_only(command: type[codemod.RuleCommand]) -> None:
    tree = cst.parse_module("old\nolder\n")

    assert command(CodemodContext(), certain=True).transform_module(tree).code == "new\nolder\n"


@pytest.mark.parametrize(
    "text", ["old  # pallas-fix: ignore[TST001]\n", "# pallas-fix: skip-file\nold\n"]
)
def test_a_command_heeds_comments(text: str, command: type[codemod.RuleCommand]) -> None:
    assert command(CodemodContext()).transform_module(cst.parse_module(text)).code == text


def test_a_file_that_libcst_would_damage_is_left_alone(
    command: type[codemod.RuleCommand], tmp_path: Path
) -> None:
    path = tmp_path / "feeds.py"
    path.write_bytes(b"x = 1\n\x0cold\n")
    context = CodemodContext(filename=str(path))

    with pytest.raises(ValueError, match="use pallas-fix apply"):
        command(context).transform_module(cst.parse_module(path.read_bytes()))


def test_a_bug_leaves_the_file_alone(
    command: type[codemod.RuleCommand], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fake, "find", lambda *_: 1 // 0)

    with pytest.raises(RuntimeError, match=r"TST001 \(fake\) failed: ZeroDivisionError"):
        command(CodemodContext()).transform_module(cst.parse_module("old\n"))


@pytest.mark.parametrize("code", ["TPU001", "GPU001"])
def test_the_tool_writes_what_the_engine_writes(code: str, tmp_path: Path) -> None:
    rule = all_rules()[code]
    texts: dict[str, bytes] = {}
    for path in (ROOT / "examples").glob("*.py"):
        data = path.read_bytes()
        texts[path.name] = data
        texts[f"crlf_{path.name}"] = data.replace(b"\n", b"\r\n")
        texts[f"bom_{path.name}"] = b"\xef\xbb\xbf" + data
        texts[f"cookie_{path.name}"] = b"# coding: latin-1\n# \xe9\n" + data.rstrip()
    for name, data in texts.items():
        (tmp_path / name).write_bytes(data)
    shutil.copy(ROOT / ".libcst.codemod.yaml", tmp_path)

    command = f"pallas_fix.codemod.{rule.__name__}"
    subprocess.run(
        [sys.executable, "-m", "libcst.tool", "codemod", "-x", command, "-j", "2", "."],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )

    changed = 0
    for name, data in texts.items():
        source = Source(tmp_path / name, data)
        outcome = fix_text(source.text, name, [heeding(rule())], lambda finding: True)
        changed += outcome.text != source.text
        assert (tmp_path / name).read_bytes() == source.encode(outcome.text)
    assert changed >= 4
