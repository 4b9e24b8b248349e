"""Replacements of expressions, and the holes in what is put there."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edited import at, code, edited, value_of
from pallas_fix.edits import (
    AddParameter,
    Edit,
    Fix,
    RemoveArgument,
    RemoveElement,
    RenameKeyword,
    Replace,
    SetKeyword,
    Span,
)
from pallas_fix.rewrite import RewriteError, apply_fixes


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("x = (A)\n", "A", "b", "x = b\n"),
        ("x = (A + b) * c\n", "A + b", "f()", "x = f() * c\n"),
        ("x = (A + b) * c\n", "A + b", "p - q", "x = (p - q) * c\n"),
        ("x = A * c\n", "A", "p + q", "x = (p + q) * c\n"),
        ("x = A * c\n", "A", "p * q", "x = p * q * c\n"),
        ("x = c - A\n", "A", "p - q", "x = c - (p - q)\n"),
        ("x = A ** c\n", "A", "-p", "x = (-p) ** c\n"),
        ("x = c ** A\n", "A", "-p", "x = c ** -p\n"),
        ("x = -A\n", "A", "p ** 2", "x = -p ** 2\n"),
        ("x = A.b\n", "A", "1", "x = (1).b\n"),
        ("x = A < b\n", "A", "p < q", "x = (p < q) < b\n"),
        ("f(A)\n", "A", "p, q", "f((p, q))\n"),
        ("x = A\n", "A", "(p, q)", "x = (p, q)\n"),
        ("x = A\n", "A", "yield", "x = yield\n"),
        ("x = not A\n", "A", "p or q", "x = not (p or q)\n"),
        ("x = a if A else c\n", "A", "lambda: p", "x = a if (lambda: p) else c\n"),
        ("x = [i for i in A]\n", "A", "p if q else r", "x = [i for i in (p if q else r)]\n"),
        ("f(*A)\n", "A", "p or q", "f(*p or q)\n"),
        ("[*A]\n", "A", "p or q", "[*(p or q)]\n"),
        ("def f(): return(A)\n", "A", "b", "def f(): return(b)\n"),
        ("x = p if(A)else q\n", "A", "b", "x = p if(b)else q\n"),
        ("x = not[A]\n", "[A]", "b", "x = not(b)\n"),
        ("x = (  # why\n    A\n)\n", "A", "b", "x = (  # why\n    b\n)\n"),
        ("x = acc[:]\n", ":", "...", "x = acc[...]\n"),
        ("x = acc[:, i]\n", ":, i", "...", "x = acc[...]\n"),
        ("x = acc[:, i]\n", ":", "0", "x = acc[0, i]\n"),
        ("x = acc[0:1, i]\n", "0:1", ":", "x = acc[:, i]\n"),
        ("f(i for i in x)\n", "(i for i in x)", "y", "f(y)\n"),
        ("f(i for i in x)\n", "(i for i in x)", "$v", "f(i for i in x)\n"),
        ("@A.b\ndef f(): pass\n", "A.b", "c(1)", "@c(1)\ndef f(): pass\n"),
        ("def f(x: A = b): pass\n", "b", "c", "def f(x: A = c): pass\n"),
        ("async def f():\n    await A\n", "A", "p + q", "async def f():\n    await (p + q)\n"),
        ("x = f'{A}'\n", "A", "d['k']", "x = f\"{d['k']}\"\n"),
        ("x = f'{A}'\n", "A", "{1, 2}", "x = f'{ {1, 2}}'\n"),
        ("x = f'{A}'\n", "A", "p == q", "x = f'{p == q}'\n"),
    ],
)
def test_a_replacement_has_the_parentheses_that_it_needs(
    text: str, old: str, new: str, expected: str
) -> None:
    span = at(text, old)

    assert edited(text, Replace(span, code(new, v=span))) == expected


@pytest.mark.parametrize(
    ("text", "new", "expected"),
    [
        ("y = p + q\n", "$v.astype(d)", "y = (p + q).astype(d)\n"),
        ("y = (p + q)\n", "f($v)", "y = f(p + q)\n"),
        ("y = p[0]\n", "$v.astype(d)", "y = p[0].astype(d)\n"),
        ("y = p + q\n", "max($v, $v)", "y = max(p + q, p + q)\n"),
        ("y = (p +  # one\n     q)\n", "$v * 2", "y = ((p +  # one\n     q) * 2)\n"),
        ("y = f(p +\n      q)\n", "$v", "y = f(p +\n      q)\n"),
        ("y = g(\n    a,  # one\n)\n", "-$v", "y = -g(\n    a,  # one\n)\n"),
        ("y = lambda: p\n", "f(k=$v)", "y = f(k=lambda: p)\n"),
        ("y = p, q\n", "f($v)", "y = f((p, q))\n"),
        ("y = a['k']\n", "f'{$v}'", "y = f\"{a['k']}\"\n"),
        ("y = a['k']\n", "f'cost $5 $v' + $v", "y = f'cost $5 $v' + a['k']\n"),
    ],
)
def test_a_hole_keeps_its_code_and_gets_parentheses_where_it_goes(
    text: str, new: str, expected: str
) -> None:
    span = value_of(text)

    assert edited(text, Replace(span, code(new, v=span))) == expected


def test_a_hole_moves_code_after_the_edits_inside_it() -> None:
    text = "y = outer(inner(acc[...], k=1))\n"

    result = edited(
        text,
        Replace(
            at(text, "outer(inner(acc[...], k=1))"), code("$i", i=at(text, "inner(acc[...], k=1)"))
        ),
        RenameKeyword(at(text, "inner(acc[...], k=1)"), "k", "key"),
        Replace(at(text, "acc[...]"), code("pop($a)", a=at(text, "acc"))),
    )

    assert result == "y = inner(pop(acc), key=1)\n"


def test_two_expressions_change_places() -> None:
    text = "y = f(first, second)\n"
    a, b = at(text, "first"), at(text, "second")

    assert edited(text, Replace(a, code("$b", b=b)), Replace(b, code("$a", a=a))) == (
        "y = f(second, first)\n"
    )


def test_holes_take_arguments_stars_slices_and_index_lists() -> None:
    text = "f(*a, k=b)\nx[i:j]\nx[i, :]\nx[i, j]\ny = old\n"
    parts = {
        "star": at(text, "*a"),
        "key": at(text, "k=b"),
        "cut": at(text, "i:j"),
        "all": at(text, "i, :"),
        "two": at(text, "i, j"),
    }
    new = code("g($star, [$star], z[$cut], z[$all], z[$two], $two, $key)", **parts)

    assert edited(text, Replace(at(text, "old"), new)).endswith(
        "y = g(*a, [*a], z[i:j], z[i, :], z[i, j], (i, j), k=b)\n"
    )


def test_columns_count_characters() -> None:
    text = "é = '\N{GRINNING FACE}\u2028', A\n"

    assert edited(text, Replace(at(text, "A"), code("b"))) == text.replace("A", "b")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Replace(Span(1, 0, 1, 2), code("x")), "Replace at 1:0-1:2: no expression there"),
        (Replace(Span(1, 0, 1, 7), code("x +")), "`x \\+` is no expression"),
        (Replace(Span(1, 0, 1, 7), code("$v", v=Span(9, 0, 9, 1))), "no statement there"),
        (SetKeyword(Span(1, 0, 1, 1), "k", code("x")), "no call there"),
        (RemoveArgument(Span(1, 0, 1, 7), Span(1, 0, 1, 1)), "no such argument"),
        (RenameKeyword(Span(1, 0, 1, 7), "k", "l"), "no argument `k`"),
        (RemoveElement(Span(1, 0, 1, 7), Span(1, 2, 1, 3)), "no list, tuple, set or dict"),
        (AddParameter(Span(1, 0, 1, 7), "p"), "no function there"),
    ],
)
def test_an_edit_without_its_node_is_named(edit: Edit, said: str) -> None:
    fine = Fix((), certain=True)

    with pytest.raises(RewriteError, match=said) as caught:
        apply_fixes("f(a, b)\n", [fine, Fix((edit,), certain=True)])

    assert caught.value.fix == 1


EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "1", "'s'", "f(x)", "[p, q]", "(p, q)", "a.b", "a[0]", "a[i, :]"]),
    lambda inner: st.one_of(
        st.tuples(
            inner, st.sampled_from(["+", "*", "**", "and", "or", "<", "|", "@", "%"]), inner
        ).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        st.tuples(st.sampled_from(["-", "not ", "lambda: "]), inner).map(
            lambda t: f"{t[0]}({t[1]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]}) if ({t[1]}) else ({t[2]})"),
        inner.map(lambda text: f"f(({text}), k=({text}))"),
    ),
    max_leaves=8,
).map(lambda text: ast.unparse(ast.parse(text, mode="eval")))
HOLES = ["$v", "f($v)", "$v.a", "$v[0]", "-$v", "not $v", "$v ** 2", "2 ** $v", "a * $v", "a - $v"]
HOLES += ["$v and b", "a < $v", "[$v, *$v]", "{**$v}", "w[$v]", "$v if a else b", "lambda: $v"]


@settings(deadline=None, max_examples=60)
@given(EXPRESSIONS, st.sampled_from(HOLES))
def test_code_means_what_its_parts_mean(value: str, template: str) -> None:
    text = f"x = {value}\n"
    span = Span(1, 4, 1, len(text) - 1)

    result = edited(text, Replace(span, code(template, v=span)))

    meant = template.replace("$v", f"({value})")
    assert ast.dump(ast.parse(result)) == ast.dump(ast.parse(f"x = {meant}\n"))


@settings(deadline=None, max_examples=40)
@given(EXPRESSIONS)
def test_a_replacement_by_itself_changes_nothing(value: str) -> None:
    text = f"x = [{value}]  # kept\r\n"
    tree = ast.parse(text)
    spans = [
        Span(1, node.col_offset, 1, node.end_col_offset or 0)
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    ]

    edits = [Fix((Replace(span, code("$v", v=span)),), certain=True) for span in spans]

    assert all(apply_fixes(text, [edit]).text == text for edit in edits)
