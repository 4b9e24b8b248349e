"""Arguments, elements and parameters that come, go or move, in every layout."""

from __future__ import annotations

import pytest

from edited import at, code, edited, function, whole
from pallas_fix.edits import (
    AddParameter,
    RemoveArgument,
    RemoveDecorator,
    RemoveElement,
    RemoveParameter,
    SetKeyword,
    Span,
)

CALLS = [
    ("f(A)\n", "f()\n"),
    ("f(A,)\n", "f()\n"),
    ("f(\n    A,  # gone\n)\n", "f()\n"),
    ("f(A, b)\n", "f(b)\n"),
    ("f(a, A)\n", "f(a)\n"),
    ("f(a, A,)\n", "f(a,)\n"),
    ("f(a, A, c)\n", "f(a, c)\n"),
    ("f(a, k=A, **c)\n", "f(a, **c)\n"),
    ("f(a, *A)\n", "f(a)\n"),
    ("f(a,\n  A,\n  c)\n", "f(a,\n  c)\n"),
    ("f(a,\n  A)\n", "f(a)\n"),
    ("f(a,  # stays\n  A)\n", "f(a  # stays\n  )\n"),
    (
        "f(\n    a,  # one\n    A,  # two\n    c,  # three\n)\n",
        "f(\n    a,  # one\n    c,  # three\n)\n",
    ),
    ("f(\n    a,  # one\n    A,  # two\n)\n", "f(\n    a,  # one\n)\n"),
    ("f(\n    a,\n    A  # two\n)\n", "f(\n    a\n)\n"),
    ("f(\n    A,\n    # about c\n    c,\n)\n", "f(\n    # about c\n    c,\n)\n"),
    ("f(\n    a,\n    # about it\n    A,\n    c,\n)\n", "f(\n    a,\n    c,\n)\n"),
    ("f(\n    a,\n    # apart\n\n    A,\n    c,\n)\n", "f(\n    a,\n    # apart\n\n    c,\n)\n"),
    ("f(\n    a, A,\n    c, d,\n)\n", "f(\n    a,\n    c, d,\n)\n"),
    ("f(\n\ta,\n\tA,\n)\n", "f(\n\ta,\n)\n"),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "expected"), CALLS)
def test_an_argument_goes_with_its_comments(text: str, expected: str, newline: str) -> None:
    text, expected = text.replace("\n", newline), expected.replace("\n", newline)
    call = whole(text)

    assert edited(text, RemoveArgument(call, at(text, "A"))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a, A]", "[a]"),
        ("[A]", "[]"),
        ("(a, A)", "(a,)"),
        ("(A, b)", "(b,)"),
        ("(A,)", "()"),
        ("a, A", "a,"),
        ("A,", "()"),
        ("{a, A}", "{a}"),
        ("{A}", "set()"),
        ("{'k': A, 'l': b}", "{'l': b}"),
        ("{'k': b, **A}", "{'k': b}"),
        ("[*A, b]", "[b]"),
        ("[\n    a,  # one\n    A,  # two\n]", "[\n    a,  # one\n]"),
        ("(\n    a,\n    A\n)", "(\n    a,\n)"),
    ],
)
def test_an_element_goes_with_its_comments(text: str, expected: str) -> None:
    display = whole(text)

    assert edited(text + "\n", RemoveElement(display, at(text, "A"))) == expected + "\n"


def test_several_elements_and_arguments_go_at_once() -> None:
    text = "f(a, [b, c, d], e)\n"
    call, display = Span(1, 0, 1, 18), at(text, "[b, c, d]")

    assert (
        edited(
            text,
            RemoveElement(display, at(text, "b")),
            RemoveElement(display, at(text, "d")),
            RemoveArgument(call, at(text, "a")),
            RemoveArgument(call, at(text, "e")),
        )
        == "f([c])\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()\n", "f(k=v)\n"),
        ("f(a)\n", "f(a, k=v)\n"),
        ("f(a,)\n", "f(a, k=v,)\n"),
        ("f(a, k=b)\n", "f(a, k=v)\n"),
        ("f(a, **b)\n", "f(a, k=v, **b)\n"),
        ("f(**b)\n", "f(k=v, **b)\n"),
        ("f(i for i in x)\n", "f((i for i in x), k=v)\n"),
        ("f(a,\n  b)\n", "f(a,\n  b,\n  k=v)\n"),
        ("f(\n    a,\n)\n", "f(\n    a,\n    k=v,\n)\n"),
        ("f(\n    a,\n    b\n)\n", "f(\n    a,\n    b,\n    k=v\n)\n"),
        ("f(\n    a, b\n)\n", "f(\n    a, b, k=v\n)\n"),
        ("f(\n    a,  # one\n)\n", "f(\n    a,  # one\n    k=v,\n)\n"),
        (
            "f(\n    a,\n    b  # two\n    # end\n)\n",
            "f(\n    a,\n    b,  # two\n    k=v\n    # end\n)\n",
        ),
        ("f(\n\ta,\n\t# rest\n\t**b,\n)\n", "f(\n\ta,\n\tk=v,\n\t# rest\n\t**b,\n)\n"),
        ("f(  # why\n)\n", "f(  # why\nk=v)\n"),
    ],
)
def test_a_new_keyword_argument_is_laid_out_as_its_neighbours(text: str, expected: str) -> None:
    assert edited(text, SetKeyword(whole(text), "k", code("v"))) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(A): pass\n", "def f(): pass\n"),
        ("def f(a, A, c): pass\n", "def f(a, c): pass\n"),
        ("def f(A: int = 0, *c): pass\n", "def f(*c): pass\n"),
        ("def f(A, /, c): pass\n", "def f(c): pass\n"),
        ("def f(a, *, A): pass\n", "def f(a): pass\n"),
        ("def f(a, *, A, **k): pass\n", "def f(a, **k): pass\n"),
        ("def f(a, *A): pass\n", "def f(a): pass\n"),
        ("def f(a, *A, k): pass\n", "def f(a, *, k): pass\n"),
        ("def f(\n    a,  # one\n    A,  # two\n): pass\n", "def f(\n    a,  # one\n): pass\n"),
        ("lambda A: 0\n", "lambda: 0\n"),
        ("lambda a, A=1: 0\n", "lambda a: 0\n"),
        ("@d\nasync def f(A): pass\n", "@d\nasync def f(): pass\n"),
    ],
)
def test_a_parameter_goes(text: str, expected: str) -> None:
    assert edited(text, RemoveParameter(function(text), "A")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(): pass\n", "def f(new): pass\n"),
        ("def f(a): pass\n", "def f(a, new): pass\n"),
        ("def f(a, b=1): pass\n", "def f(a, new, b=1): pass\n"),
        ("def f(a, /, *c, k): pass\n", "def f(a, /, new, *c, k): pass\n"),
        ("def f(*, k): pass\n", "def f(new, *, k): pass\n"),
        ("def f(**k): pass\n", "def f(new, **k): pass\n"),
        ("def f(\n    a,\n    b,\n): pass\n", "def f(\n    a,\n    b,\n    new,\n): pass\n"),
        ("lambda: 0\n", "lambda new: 0\n"),
        ("lambda a: 0\n", "lambda a, new: 0\n"),
    ],
)
def test_a_parameter_comes_last_of_those_bound_by_position(text: str, expected: str) -> None:
    assert edited(text, AddParameter(function(text), "new")) == expected


def test_a_parameter_moves_with_its_annotation() -> None:
    text = "def f(a, acc: Ref, b): pass\n"
    span = function(text)

    assert edited(text, RemoveParameter(span, "acc"), AddParameter(span, "acc")) == (
        "def f(a, b, acc: Ref): pass\n"
    )


def test_a_decorator_goes() -> None:
    text = "# about f\n@keep\n@drop(1)  # gone\ndef f(): pass\n"
    span = Span(4, 0, 4, 13)

    assert edited(text, RemoveDecorator(span, at(text, "drop(1)"))) == (
        "# about f\n@keep\ndef f(): pass\n"
    )
