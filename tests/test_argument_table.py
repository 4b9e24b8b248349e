"""The table of arguments against the signatures of the installed jax."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from packaging.version import Version

from pallas_fix.facts.paths import whole
from pallas_fix.rules.arguments.table import Argument, arguments
from test_tables import resolve

JAX = Version(version("jax"))
ROWS = [row for named in arguments().values() for row in named]
Kind = inspect._ParameterKind


def label(row: Argument) -> str:
    return f"{row.call}-{row.old or row.unnamed or 'positional'}"


def parameters(name: str) -> dict[str, Kind] | None:
    """The parameters of a function of the installed jax; None where they cannot be known."""
    with warnings.catch_warnings(action="ignore"):
        try:
            found = inspect.signature(resolve(whole(name)))  # type: ignore[arg-type]
        except (AttributeError, ImportError, ValueError, TypeError):
            return None
    kinds = {name: parameter.kind for name, parameter in found.parameters.items()}
    hidden = {Kind.VAR_KEYWORD, Kind.VAR_POSITIONAL}
    return None if hidden & set(kinds.values()) else kinds


def known() -> Iterator[Argument]:
    yield from (row for row in ROWS if parameters(row.call) is not None)


@pytest.mark.parametrize("row", list(known()), ids=label)
def test_the_row_is_true(row: Argument) -> None:
    kinds = parameters(row.call)
    assert kinds is not None
    gone = row.change.fails is not None and row.change.fails <= JAX
    if row.old and gone:
        assert row.old not in kinds
    if row.new and row.change.works <= JAX:
        assert row.new in kinds
    if row.unnamed and gone:
        assert kinds.get(row.unnamed) in (Kind.POSITIONAL_ONLY, None)
    if row.positional and gone and not row.becomes:
        allowed = [n for n, kind in kinds.items() if kind is not Kind.KEYWORD_ONLY]
        assert tuple(allowed[: len(row.positional)]) != tuple(row.positional)


@pytest.mark.parametrize("row", [row for row in ROWS if row.becomes], ids=label)
def test_what_a_function_becomes_takes_these_keywords(row: Argument) -> None:
    if row.change.works <= JAX:
        kinds = parameters(row.becomes)
        assert kinds is not None
        assert set(row.positional) <= kinds.keys()


def test_a_row_says_one_thing() -> None:
    for row in ROWS:
        said = [bool(row.old), bool(row.unnamed), bool(row.positional)]
        assert said.count(True) == 1, label(row)
        assert not row.old or bool(row.new) != row.drop, label(row)
        assert bool(row.only) <= bool(row.way_out), label(row)
        assert row.source, label(row)
        assert row.warns or row.fails, label(row)
