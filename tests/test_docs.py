"""The documentation says what the code does: generated pages, commands, options."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from docs import PAGES, ROOT, SECTIONS, documentation, generated
from pallas_fix.cli import cli
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Rule

WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_generated_pages_are_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == generated()[path]


def test_no_page_is_left_of_a_rule_that_is_gone() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {"README", *all_rules()}


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.code)
def test_a_rule_documents_itself_with_code_that_parses(rule: type[Rule]) -> None:
    text = documentation(rule)
    sections = re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]

    assert all(section.strip() for section in sections), SECTIONS
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        ast.parse(block)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_commands_in_the_documentation_exist(path: Path) -> None:
    for name, rest in re.findall(r"pallas-fix ([a-z]+)\b([^`\n|#]*)", path.read_text("utf-8")):
        command = cli.commands[name]
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= options


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_links_between_the_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target
