"""What no edit touches stays as it is, and fixes that meet wait for one another."""

from __future__ import annotations

import pytest

from edited import at, code, edited, function
from pallas_fix.edits import (
    AddImport,
    Edit,
    Fix,
    InsertAfter,
    InsertBefore,
    MoveIntoScope,
    RemoveArgument,
    RemoveStatement,
    RenameKeyword,
    Replace,
    SetKeyword,
)
from pallas_fix.rewrite import RewriteError, apply_fixes

ODD = [
    pytest.param("x = A\r\ny = 1\r\n", id="crlf"),
    pytest.param("x = 1\ny = A\r\nz = [\r  1,\n]\r\n", id="mixed"),
    pytest.param("x = 1\ry = A\r", id="cr"),
    pytest.param("\ufeffx = A\n", id="bom"),
    pytest.param("#!/bin/sh\n# -*- coding: latin-1 -*-\n\nx = 'é', A\n", id="cookie"),
    pytest.param("if x:\n\ty = A\n\tif z:\n\t\tpass", id="tabs"),
    pytest.param("if x:\n  y = A\n  if z:\n      pass\n", id="uneven"),
    pytest.param("def f():\n    return A", id="no final newline"),
    pytest.param("x = 1\n\x0c\ndef f():\n    return A\n", id="form feed alone"),
    pytest.param("x = 1\n\x0cdef f():\n    return A\n", id="form feed before a line"),
    pytest.param(
        "\x0c\x0cx = A, 1\n\x0c# c\n\x0cy = '\x0c\n\x0c'\n".replace("'", "'''"), id="feeds"
    ),
    pytest.param("def f():\r\n    x = 1\r\n\x0c    return A\r\n", id="form feed before an indent"),
    pytest.param("x = 'a\u2028b\x85c'; y = A\n", id="separators in strings"),
    pytest.param("x = a \\\n  + A \\\n  # c\n", id="continued lines"),
    pytest.param("x = f(a , # one\n  # two\n\n  A ,  )  # three\n", id="comments in brackets"),
    pytest.param("x = f'{a!r:>{w}}' f\"{b}\" r'\\n' 'A', A;  # c\n   \n# d\n", id="strings"),
    pytest.param("if x: A ;\nelif  y : pass # c\nelse :pass\n\n\n", id="one-liners"),
    pytest.param("def f():\n    return A\n   \n\t\n", id="blanks at the end"),
    pytest.param("if x:\r\n    y = A\r\n  \r\n    # c\r\n\t# d", id="comments at the end"),
    pytest.param("match x:\n  case [1, *_] if A: pass\n", id="match"),
    pytest.param("class C[T: int]:\n  def f[*P](self): return A\ntype X = int\n", id="generics"),
]


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("new", ["b", "call(b)"])
def test_every_other_byte_stays(text: str, new: str) -> None:
    before, _, after = text.rpartition("A")

    assert apply_fixes(
        text, [Fix((Replace(at(text, "A", -1), code(new)),), certain=True)]
    ).text == (f"{before}{new}{after}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\\\nx = 1\n", "line 1 differs"),
        ("x = 1\nif x:\n  a\n  \\\n  b\n", "line 4 differs"),
        ("x = (\n", "libcst cannot parse this file"),
        ("x = " + "+".join("1" * 2000) + "\n", "nested too deeply"),
    ],
)
def test_a_file_that_libcst_would_damage_is_refused(text: str, said: str) -> None:
    with pytest.raises(RewriteError, match=said) as caught:
        apply_fixes(text, [Fix((AddImport("jax"),), certain=True)])

    assert caught.value.fix is None


def test_new_code_takes_indentation_and_line_ends_of_the_file() -> None:
    text = "def f():\r\n\tif a:\r\n\t\tb\r\n"

    assert edited(text, InsertAfter(at(text, "b"), code("g(\n    1,\n)\nif c:\n    d"))) == (
        "def f():\r\n\tif a:\r\n\t\tb\r\n\t\tg(\r\n\t\t\t1,\r\n\t\t)\r\n\t\tif c:\r\n\t\t\td\r\n"
    )


TEXT = """\
def kernel(a, b):
    x = f(a[0], k=1)
    y = g(b)
    return x


def other(a):
    return h(a, 1)
"""
F, G, H = at(TEXT, "f(a[0], k=1)"), at(TEXT, "g(b)"), at(TEXT, "h(a, 1)")
X, Y = at(TEXT, "x = f(a[0], k=1)"), at(TEXT, "y = g(b)")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Replace(F, code("p")), Replace(F, code("q"))),
        (Replace(F, code("p")), Replace(at(TEXT, "a[0]"), code("q"))),
        (Replace(at(TEXT, "a[0]"), code("q")), Replace(F, code("p"))),
        (RemoveStatement(X), Replace(at(TEXT, "a[0]"), code("q"))),
        (SetKeyword(F, "m", code("1")), SetKeyword(F, "n", code("2"))),
        (SetKeyword(F, "m", code("1")), RemoveArgument(F, at(TEXT, "a[0]"))),
        (InsertAfter(X, code("p")), InsertBefore(Y, code("q"))),
        (InsertBefore(X, code("p")), Replace(F, code("q"))),
        (InsertAfter(Y, code("$v", v=F)), Replace(F, code("q"))),
        (MoveIntoScope(function(TEXT), "s", (), code("s()")), Replace(G, code("p"))),
        (MoveIntoScope(function(TEXT), "s", (), code("s()")), InsertBefore(X, code("p"))),
    ],
)
def test_the_later_of_two_fixes_that_meet_waits(first: Edit, second: Edit) -> None:
    both = [Fix((first,), certain=True), Fix((second,), certain=True)]

    together = apply_fixes(TEXT, both)

    assert (together.applied, together.deferred) == ((0,), (1,))
    assert together.text == apply_fixes(TEXT, both[:1]).text


def test_fixes_that_do_not_meet_are_made_together() -> None:
    edits: list[tuple[Edit, ...]] = [
        (Replace(at(TEXT, "a[0]"), code("pop(a)")), AddImport("jax")),
        (RenameKeyword(F, "k", "key"), AddImport("jax")),
        (Replace(G, code("f($b)", b=at(TEXT, "b", 1))),),
        (InsertBefore(at(TEXT, "return x"), code("check(x)")),),
        (RemoveArgument(H, at(TEXT, "1", 1)), SetKeyword(H, "n", code("2"))),
    ]

    result = apply_fixes(TEXT, [Fix(each, certain=True) for each in edits])

    assert (result.applied, result.deferred) == ((0, 1, 2, 3, 4), ())
    assert (
        result.text
        == """\
import jax

def kernel(a, b):
    x = f(pop(a), key=1)
    y = f(b)
    check(x)
    return x


def other(a):
    return h(a, n=2)
"""
    )


def test_a_fix_that_waits_adds_no_import() -> None:
    fixes = [
        Fix((Replace(F, code("p")),), certain=True),
        Fix((Replace(F, code("q")), AddImport("jax")), certain=True),
    ]

    assert "import" not in apply_fixes(TEXT, fixes).text


def test_no_fix_leaves_even_a_broken_text_alone() -> None:
    assert apply_fixes("x = (", []).text == "x = ("
