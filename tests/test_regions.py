"""The regions that a fix changes, put together again, give the text that it makes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pallas_fix.report.regions import line_change, replacements
from reported import sarif_fixed, suggested

LINES = st.lists(st.sampled_from(["a", "bb", "", "c é", "\tx", "a\fb", "q\u2028r"]), max_size=8)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts with the same line ends."""
    end = draw(st.sampled_from(["\n", "\r\n"]))
    last = end if draw(st.booleans()) else ""
    before, after = (
        end.join(lines) + (last if lines else "") for lines in draw(st.tuples(LINES, LINES))
    )
    return before, after


@settings(max_examples=500, deadline=None)
@given(texts())
def test_exact_replacements(both: tuple[str, str]) -> None:
    before, after = both
    made = [
        {
            "deletedRegion": {
                "startLine": one.line,
                "startColumn": one.column,
                "endLine": one.end_line,
                "endColumn": one.end_column,
            },
            "insertedContent": {"text": one.text},
        }
        for one in replacements(before, after)
    ]
    assert sarif_fixed(before, {"artifactChanges": [{"replacements": made}]}) == after


@settings(max_examples=500, deadline=None)
@given(texts())
def test_whole_lines(both: tuple[str, str]) -> None:
    before, after = both
    change = line_change(before, after)
    if change is None:
        return
    assert change.text
    place = {"start": {"line": change.first}, "end": {"line": change.last}}
    assert suggested(before, [{"range": place, "text": change.text}]) == after


def test_no_more_than_what_changes() -> None:
    [one] = replacements("a\nx = f(1)\nb\n", "a\nx = f(22)\nb\n")
    assert (one.line, one.column, one.end_column, one.text) == (2, 7, 8, "22")
    change = line_change("a\nb\nc\n", "a\nb\nnew\nc\n")
    assert change is not None
    assert (change.first, change.last, change.text) == (2, 2, "b\nnew")


def test_what_no_whole_lines_can_say() -> None:
    assert line_change("a\n", "") is None
    assert line_change("a\n", "b") is None
