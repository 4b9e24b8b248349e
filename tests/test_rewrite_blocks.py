"""Statements that come, go or move into a scope."""

from __future__ import annotations

import pytest

from edited import at, code, edited, function
from pallas_fix.edits import (
    InsertAfter,
    InsertBefore,
    InsertFirst,
    MoveIntoScope,
    RemoveParameter,
    RemoveStatement,
    Replace,
)


def shaped(text: str, indent: str, newline: str) -> str:
    """A text written with four spaces and LF, in another style."""
    lines = text.split("\n")
    parts = ((line, line.lstrip(" ")) for line in lines)
    return newline.join(indent * ((len(line) - len(rest)) // 4) + rest for line, rest in parts)


def inferred(text: str, indent: str, newline: str) -> tuple[str, str]:
    """The style, as far as a text in it shows it: the rest are the defaults."""
    return indent if "\n    " in text else "    ", newline if "\n" in text else "\n"


STYLES = pytest.mark.parametrize(
    ("indent", "newline"), [("    ", "\n"), ("  ", "\r\n"), ("\t", "\n"), ("    ", "\r")]
)
NEW = "if new:\n    go()"

INSERTED_BEFORE = [
    ("def f():\n    a\n    A\n    b\n", "def f():\n    a\n    {}\n    A\n    b\n"),
    ("def f():\n    A\n", "def f():\n    {}\n    A\n"),
    ("a\n\n# about it\nA  # kept\n", "a\n\n{}\n# about it\nA  # kept\n"),
    ("#!/bin/python\n# about it\nA\n", "#!/bin/python\n# about it\n{}\nA\n"),
    ("a; A; b  # kept\n", "a\n{}\nA; b  # kept\n"),
    ("A; b;\n", "{}\nA; b;\n"),
    ("if x: A  # kept\n", "if x:\n    {}\n    A  # kept\n"),
    ("if x: a; A\nelse: b\n", "if x:\n    a\n    {}\n    A\nelse: b\n"),
    (
        "class C:\n    def m(self): return A\n",
        "class C:\n    def m(self):\n        {}\n        return A\n",
    ),
    ("try:\n    a\nfinally:\n    A\n", "try:\n    a\nfinally:\n    {}\n    A\n"),
    ("with x:\n    # about it\n    A", "with x:\n    {}\n    # about it\n    A"),
]


def put(expected: str, indent: str, newline: str) -> str:
    """The expected text with the new statement in the place of the braces."""
    lines = []
    for line in expected.split("\n"):
        depth = line[: len(line) - len(line.lstrip(" "))]
        lines += [depth + new for new in NEW.split("\n")] if "{}" in line else [line]
    return shaped("\n".join(lines), indent, newline)


@STYLES
@pytest.mark.parametrize(("text", "expected"), INSERTED_BEFORE)
def test_statements_come_before(text: str, expected: str, indent: str, newline: str) -> None:
    indent, newline = inferred(text, indent, newline)
    text = shaped(text, indent, newline)
    anchor = at(text, "return A" if "return A" in text else "A")

    assert edited(text, InsertBefore(anchor, code(NEW))) == put(expected, indent, newline)


@STYLES
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    A\n    b\n", "def f():\n    A\n    {}\n    b\n"),
        (
            "def f():\n    A  # kept\n\n    # next\n    b\n",
            "def f():\n    A  # kept\n    {}\n\n    # next\n    b\n",
        ),
        ("def f():\n    A\n    # the end\n", "def f():\n    A\n    {}\n    # the end\n"),
        ("A; b  # kept\n", "A\n{}\nb  # kept\n"),
        ("a; A;  # kept\n", "a; A;  # kept\n{}\n"),
        ("while x: A\n", "while x:\n    A\n    {}\n"),
        ("A", "A\n{}"),
        ("A\n# the end", "A\n{}\n# the end"),
    ],
)
def test_statements_come_after(text: str, expected: str, indent: str, newline: str) -> None:
    indent, newline = inferred(text, indent, newline)
    text = shaped(text, indent, newline)

    assert edited(text, InsertAfter(at(text, "A"), code(NEW))) == put(expected, indent, newline)


@STYLES
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('def f():\n    """Doc."""\n    a\n', 'def f():\n    """Doc."""\n    {}\n    a\n'),
        ('def f():\n    """Doc."""\n\n    a\n', 'def f():\n    """Doc."""\n\n    {}\n    a\n'),
        ('def f():\n    """Doc."""\n', 'def f():\n    """Doc."""\n    {}\n'),
        (
            "def f():  # kept\n    # about a\n    a\n",
            "def f():  # kept\n    {}\n    # about a\n    a\n",
        ),
        ("def f(): return a\n", "def f():\n    {}\n    return a\n"),
        ("def f(): 'doc'; a\n", "def f():\n    'doc'\n    {}\n    a\n"),
        ("@d\nasync def f():\n    a\n", "@d\nasync def f():\n    {}\n    a\n"),
    ],
)
def test_statements_come_first(text: str, expected: str, indent: str, newline: str) -> None:
    indent, newline = inferred(text, indent, newline)
    text = shaped(text, indent, newline)

    assert edited(text, InsertFirst(function(text), code(NEW))) == put(expected, indent, newline)


@STYLES
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    A\n", "def f():\n    pass\n"),
        ("def f():\n    A\n    # the end\n", "def f():\n    pass\n    # the end\n"),
        ("def f():\n    A\n\n    b\n", "def f():\n    b\n"),
        ("def f():\n    a\n\n    A\n    b\n", "def f():\n    a\n\n    b\n"),
        ("def f():\n    a\n\n    A\n\n    b\n", "def f():\n    a\n\n    b\n"),
        ("def f():\n    a\n    # about it\n    A  # too\n    b\n", "def f():\n    a\n    b\n"),
        (
            "def f():\n    a\n    # part two\n\n    A\n    b\n",
            "def f():\n    a\n    # part two\n\n    b\n",
        ),
        ("def f():\n    a\n    # part two\n\n    A\n", "def f():\n    a\n    # part two\n\n"),
        ("a; A; b  # kept\n", "a; b  # kept\n"),
        ("a; A  # kept\n", "a  # kept\n"),
        ("A; b;\n", "b;\n"),
        ("# -*- coding: utf-8 -*-\nA\nb\n", "# -*- coding: utf-8 -*-\nb\n"),
        ("A\n", ""),
        ("a\nA", "a"),
        ("if x: A  # gone\n", "if x: pass\n"),
        ("if x: a; A\n", "if x: a\n"),
        ("if x:\n    a\nelse:\n    A\n", "if x:\n    a\nelse:\n    pass\n"),
    ],
)
def test_a_statement_goes(text: str, expected: str, indent: str, newline: str) -> None:
    indent, newline = inferred(text, indent, newline)
    text = shaped(text, indent, newline)

    result = edited(text, RemoveStatement(at(text, "A")))

    assert result == shaped(expected, indent, newline)


def test_what_comes_in_the_place_of_a_statement_keeps_its_comment() -> None:
    text = "a\n\n# store\nA = f(x)\nb\n"
    anchor = at(text, "A = f(x)")

    result = edited(
        text,
        InsertBefore(anchor, code("store(A, $v)", v=at(text, "f(x)"))),
        RemoveStatement(anchor),
        Replace(at(text, "x"), code("y")),
    )

    assert result == "a\n\n# store\nstore(A, f(y))\nb\n"


def test_a_value_gets_a_name_first() -> None:
    text = "acc[...] = f(acc[...],  # old\n             k)\n"
    value = at(text, text[11:-1])

    result = edited(
        text,
        InsertBefore(at(text, text[:-1]), code("value = $v\nassert value.shape", v=value)),
        Replace(value, code("value")),
        Replace(at(text, "acc[...]", 1), code("pop(acc)")),
    )

    assert result == (
        "value = f(pop(acc),  # old\n             k)\nassert value.shape\nacc[...] = value\n"
    )


BODY = '''\
class C:
    def kernel(self, x_ref, o_ref, acc):
        """Doc."""

        # about y
        y = f(x_ref,  # one
              # two
              acc)

        @when(y)
        def _():
            s = """
  text
    more"""; t = b"\\
 x"
            z = y + \\
                1
        o_ref[...] = (
    acc
        )
        # the end

    def other(self): pass
'''
SCOPED = '''\
class C:
    def kernel(self, x_ref, o_ref):
        """Doc."""

        def scope(acc):
            # about y
            y = f(x_ref,  # one
                  # two
                  acc)

            @when(y)
            def _():
                s = """
  text
    more"""; t = b"\\
 x"
                z = y + \\
                    1
            o_ref[...] = (
        acc
            )
            # the end

        run(scope, ACC(0)((8, 128)))

    def other(self): pass
'''


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_statements_move_into_a_scope(newline: str) -> None:
    text, expected = BODY.replace("\n", newline), SCOPED.replace("\n", newline)
    span = function(text)

    result = edited(
        text,
        RemoveParameter(span, "acc"),
        MoveIntoScope(span, "scope", ("acc",), code("run(scope, ACC(0)((8, 128)))")),
    )

    assert result == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "def f(): a; return b\n",
            "def f():\n    def s(p, q):\n        a; return b\n\n    return run(s)\n",
        ),
        (
            "def f(): 'doc'; a\n",
            "def f():\n    'doc'\n\n    def s(p, q):\n        a\n\n    return run(s)\n",
        ),
        (
            "def f():\n\ta\n\tif b:\n\t\tc",
            "def f():\n\tdef s(p, q):\n\t\ta\n\t\tif b:\n\t\t\tc\n\n\treturn run(s)",
        ),
        (
            "if x:\n  def f():\n     a\n",
            "if x:\n  def f():\n     def s(p, q):\n       a\n\n     return run(s)\n",
        ),
    ],
)
def test_the_scope_is_indented_as_the_file_is(text: str, expected: str) -> None:
    edit = MoveIntoScope(function(text), "s", ("p", "q"), code("return run(s)"))

    assert edited(text, edit) == expected


def test_a_part_of_a_body_moves_with_what_is_inserted_there() -> None:
    text = "def f():\n    a; b\n    c\n    d\n"
    span = function(text)

    result = edited(
        text,
        InsertFirst(span, code("first")),
        InsertBefore(at(text, "b"), code("before")),
        InsertAfter(at(text, "c"), code("after")),
        RemoveStatement(at(text, "c")),
        MoveIntoScope(span, "s", (), code("run(s)"), first=at(text, "b"), last=at(text, "c")),
    )

    assert result == (
        "def f():\n    first\n    a\n\n    def s():\n        before\n        b\n        after\n\n"
        "    run(s)\n    d\n"
    )
