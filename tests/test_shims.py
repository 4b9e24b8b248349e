"""Code that cares for several versions of jax itself: nothing in it changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pallas_fix.facts import Facts
from pallas_fix.fixpoint import fix_text
from pallas_fix.rules import all_rules

SHIMS = sorted((Path(__file__).parent / "projects" / "shims").glob("*.py"))


@pytest.mark.parametrize("path", SHIMS, ids=lambda path: path.stem)
def test_a_shim_stays_as_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    rules = [rule() for code, rule in all_rules().items() if code != "IGN001"]
    outcome = fix_text(text, str(path), rules, lambda finding: True)
    assert outcome.bug == ""
    assert outcome.text == text


def guarded_words(text: str) -> list[str]:
    """The attributes that stand in code that is left alone."""
    facts = Facts.parse(text, "k.py")
    nodes = [node for node in ast.walk(facts.tree) if isinstance(node, ast.Attribute)]
    return [node.attr for node in nodes if facts.is_guarded(facts.span(node))]


@pytest.mark.parametrize(
    "text",
    [
        # A setting is no question about jax.
        "class K:\n"
        "    def __init__(self, config):\n"
        "        self.dtype = getattr(config, 'dtype', None)\n"
        "    def run(self, pl):\n"
        "        if self.dtype is not None:\n"
        "            pl.load\n",
        # What goes wrong there may be anything.
        "import jax\ntry:\n    jax.tree_map\nexcept Exception:\n    print()\n",
        "import jax\nif x:\n    jax.tree_map\nelse:\n    jax.tree.map\n",
        # A module of Pallas is there or not: its uses are repaired.
        "try:\n    from jax.experimental import pallas as pl\nexcept ImportError:\n    pl = None\n"
        "pl.load\n",
    ],
)
def test_other_code_is_not_left_alone(text: str) -> None:
    assert guarded_words(text) == []
