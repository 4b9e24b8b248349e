"""The tables of names against the installed jax: every row is true, and none is missing."""

from __future__ import annotations

import contextlib
import importlib
import types
import warnings
from collections.abc import Iterator
from importlib.metadata import version

import pytest
from packaging.version import Version

from pallas_fix.facts.paths import whole
from pallas_fix.rules import all_rules
from pallas_fix.rules.renames.table import Row, modules, rows

JAX = Version(version("jax"))
ROWS = [row for named in rows().values() for row in named]
PALLAS = {
    "pl": "jax.experimental.pallas",
    "pltpu": "jax.experimental.pallas.tpu",
    "plgpu": "jax.experimental.pallas.mosaic_gpu",
    "triton": "jax.experimental.pallas.triton",
    "plsc": "jax.experimental.pallas.tpu_sc",
    "fuser": "jax.experimental.pallas.fuser",
}


def resolve(path: str, imported: str = "") -> object:
    """What a dotted path stands for. Raises AttributeError or ImportError where nothing."""
    if imported:
        importlib.import_module(imported)
    parts = path.split(".")
    loaded: object = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if isinstance(loaded, types.ModuleType) and parts[1] in ("experimental", "extend", "_src"):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(".".join(parts[:number]))
        loaded = getattr(loaded, part)
    return loaded


def state(path: str) -> str:
    """Whether a name of the installed jax works, warns, or fails."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            resolve(path)
        except (AttributeError, ImportError):
            return "fails"
    told = [w for w in caught if issubclass(w.category, DeprecationWarning)]
    return "warns" if any(path.rpartition(".")[2] in str(w.message) for w in told) else "works"


def expected(row: Row) -> set[str]:
    """What the table says of the old name on the installed jax.

    An attribute warns once in a process: after that it seems to work.
    """
    change = row.change
    if change.fails is not None and change.fails <= JAX:
        return {"fails"}
    if change.warns is not None and change.warns <= JAX:
        return {"warns", "works"}
    return {"works", "fails"}  # it may not have come yet


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.old}-{row.works}")
def test_the_row_is_true(row: Row) -> None:
    assert state(whole(row.name)) in expected(row)
    if row.new and row.change.works <= JAX:
        with warnings.catch_warnings(action="ignore"):
            resolve(whole(row.new.partition("(")[0]), row.imports)


@pytest.mark.parametrize("row", modules().values(), ids=lambda row: row.old)
def test_the_module_has_moved(row: Row) -> None:
    fails = row.change.fails
    if fails is not None and fails <= JAX:
        with pytest.raises(ImportError):
            importlib.import_module(row.old)
    if row.new and row.change.works <= JAX:
        with warnings.catch_warnings(action="ignore"):
            importlib.import_module(row.new)


def test_a_row_has_a_new_form_or_a_reason() -> None:
    for row in (*ROWS, *modules().values()):
        assert [bool(row.new), bool(row.reason), bool(row.rule)].count(True) == 1, row.old
        assert bool(row.reason) == bool(row.way_out), row.old
        assert row.warns or row.fails, row.old
        assert row.source, row.old


def deprecated() -> Iterator[tuple[str, str]]:
    """The public Pallas names that the installed jax deprecates, each with what it says."""
    for short, path in PALLAS.items():
        try:
            module = importlib.import_module(path)
        except ImportError:
            continue
        for name, (message, _) in getattr(module, "_deprecations", {}).items():
            yield f"{short}.{name}", message


def test_every_deprecated_name_is_known() -> None:
    unknown = {name: says for name, says in deprecated() if name not in rows()}
    assert not unknown, f"jax {JAX} deprecates names that no table or rule knows"


def test_the_rules_that_the_tables_name_exist() -> None:
    assert {row.rule for row in ROWS if row.rule} <= set(all_rules())
