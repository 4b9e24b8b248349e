"""Parameters that are renamed, and parameters that are put first."""

from __future__ import annotations

import pytest

from edited import edited, function
from pallas_fix.edits import AddParameter, Fix, RemoveParameter, RenameParameter
from pallas_fix.rewrite import RewriteError, apply_fixes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(a): pass\n", "def f(b): pass\n"),
        ("def f(a: int = 1, *, c): pass\n", "def f(b: int = 1, *, c): pass\n"),
        ("def f(\n    x,\n    a,  # why\n): pass\n", "def f(\n    x,\n    b,  # why\n): pass\n"),
        ("g = lambda a, c: c\n", "g = lambda b, c: c\n"),
        ("def f(*a): pass\n", "def f(*b): pass\n"),
    ],
)
def test_a_parameter_is_renamed(text: str, expected: str) -> None:
    assert edited(text, RenameParameter(function(text), "a", "b")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(): pass\n", "def f(_): pass\n"),
        ("def f(a): pass\n", "def f(_, a): pass\n"),
        ("def f(*refs): pass\n", "def f(_, *refs): pass\n"),
        ("def f(a, /, b): pass\n", "def f(_, a, /, b): pass\n"),
        ("def f(\n    a,\n    b,\n): pass\n", "def f(\n    _,\n    a,\n    b,\n): pass\n"),
        ("g = lambda a: a\n", "g = lambda _, a: a\n"),
        ("g = lambda: 1\n", "g = lambda _: 1\n"),
    ],
)
def test_a_parameter_is_put_first(text: str, expected: str) -> None:
    assert edited(text, AddParameter(function(text), "_", first=True)) == expected


def test_with_others_that_go() -> None:
    text = "def f(a, b, c): pass\n"
    span = function(text)
    edits = (RenameParameter(span, "a", "d"), RemoveParameter(span, "b"), AddParameter(span, "e"))
    assert edited(text, *edits) == "def f(d, c, e): pass\n"


def test_a_parameter_that_is_not_there() -> None:
    text = "def f(a): pass\n"
    with pytest.raises(RewriteError, match="no parameter `b`"):
        apply_fixes(text, [Fix((RenameParameter(function(text), "b", "c"),), certain=True)])
