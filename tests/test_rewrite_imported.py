"""Edits of import statements: names renamed and taken out, other modules."""

from __future__ import annotations

import ast

import pytest

from pallas_fix.edits import Edit, Fix, SetImported, SetModule, Span
from pallas_fix.facts import Facts
from pallas_fix.rewrite import RewriteError, apply_fixes


def edited(text: str, make: type[SetImported] | type[SetModule], *values: str) -> str:
    facts = Facts.parse(text, "k.py")
    statement = next(n for n in ast.walk(facts.tree) if isinstance(n, ast.Import | ast.ImportFrom))
    edit: Edit = make(facts.span(statement), *values)
    return apply_fixes(text, [Fix((edit,), certain=True)]).text


@pytest.mark.parametrize(
    ("before", "name", "new", "after"),
    [
        ("from m import a\n", "a", "b", "from m import b\n"),
        ("from m import a as x  # why\n", "a", "b", "from m import b as x  # why\n"),
        ("from m import a, c\n", "a", "b as a", "from m import b as a, c\n"),
        ("import m.a as x\n", "m.a", "m.b", "import m.b as x\n"),
        ("import os, m.a\n", "m.a", "m.b", "import os, m.b\n"),
        ("from m import a, c\n", "a", "", "from m import c\n"),
        ("from m import a, c\n", "c", "", "from m import a\n"),
        ("from m import (a, c,)\n", "c", "", "from m import (a,)\n"),
        ("from m import (\n    a,\n    c,\n)\n", "c", "", "from m import (\n    a,\n)\n"),
        ("from m import (\n    a,  # x\n    c\n)\n", "a", "", "from m import (\n    c\n)\n"),
        (
            "from m import (\n    a,\n    c,  # x\n    d,\n)\n",
            "c",
            "",
            "from m import (\n    a,\n    d,\n)\n",
        ),
        ("if x: from m import a, \\\n    c\n", "a", "", "if x: from m import c\n"),
        ("from m import a;  x = 1\n", "a", "b", "from m import b;  x = 1\n"),
        ("from m import a\r\nx = 1\r\n", "a", "b", "from m import b\r\nx = 1\r\n"),
    ],
)
def test_a_name_of_an_import(before: str, name: str, new: str, after: str) -> None:
    assert edited(before, SetImported, name, new) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from m import a\n", "from p.q import a\n"),
        ("from  m.n import (a,  # x\n  b)\n", "from  p.q import (a,  # x\n  b)\n"),
    ],
)
def test_the_module_of_an_import(before: str, after: str) -> None:
    assert edited(before, SetModule, "p.q") == after


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_is_not_imported_cannot_be_changed(name: str) -> None:
    with pytest.raises(RewriteError, match="import"):
        edited("from m import a\n", SetImported, name, "")


def test_a_star_has_no_names() -> None:
    fix = Fix((SetImported(Span(1, 0, 1, 15), "a", "b"),), certain=True)
    with pytest.raises(RewriteError, match="no import of names there"):
        apply_fixes("from m import *\n", [fix])
