"""A positional argument gets a keyword, alone and with other edits of the same call."""

from __future__ import annotations

import pytest

from edited import at, edited
from pallas_fix.edits import Code, Fix, NameArgument, RemoveArgument, Replace, SetKeyword, Span
from pallas_fix.rewrite import RewriteError, apply_fixes


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("f(a, b)\n", "b", "f(a, m=b)\n"),
        ("f(a,\n  b,  # why\n)\n", "b", "f(a,\n  m=b,  # why\n)\n"),
        ("f(a, b if c else d)\n", "b if c else d", "f(a, m=b if c else d)\n"),
        ("f(a, (b))\n", "b", "f(a, m=(b))\n"),
        ("x = g(f(a, b))\n", "b", "x = g(f(a, m=b))\n"),
    ],
)
def test_it_gets_a_keyword(text: str, value: str, expected: str) -> None:
    call = text[text.index("f(") : text.rindex(")") + 1]
    call = call[: call.index("))") + 1] if text.startswith("x") else call
    assert edited(text, NameArgument(at(text, call), at(text, value), "m")) == expected


def test_its_keyword_may_go() -> None:
    text = "f(a=x,  # why\n  b=y)\n"
    edit = NameArgument(at(text, text.strip()), at(text, "x"), "")
    assert edited(text, edit) == "f(x,  # why\n  b=y)\n"


def test_the_other_arguments_may_be_edited_with_it() -> None:
    text = "f(a, b, c)\n"
    call = at(text, "f(a, b, c)")
    edits = (
        NameArgument(call, at(text, "c"), "m"),
        Replace(at(text, "c"), Code("d")),
        RemoveArgument(call, at(text, "b")),
        SetKeyword(call, "n", Code("1")),
    )
    assert edited(text, *edits) == "f(a, m=d, n=1)\n"


def test_an_argument_that_is_not_there() -> None:
    fix = Fix((NameArgument(Span(1, 0, 1, 4), Span(1, 9, 1, 10), "m"),), certain=True)
    with pytest.raises(RewriteError, match="no such argument"):
        apply_fixes("f(a)\n", [fix])
