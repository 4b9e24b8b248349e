"""`pallas-fix survey`: what breaks between two versions of jax."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console import Console

OLD = """\
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SPACE = getattr(pltpu, "ANY")


def kernel(x_ref, o_ref):
    o_ref[...] = pl.reciprocal(x_ref[...])


def run(x):
    spec = pl.BlockSpec(memory_space=pltpu.ANY)
    params = pltpu.TPUCompilerParams()
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(kernel, shape, in_specs=[spec], compiler_params=params)(x)
"""
OTHER = """\
from jax.experimental.pallas import tpu as pltpu

ANY = pltpu.ANY
"""


@pytest.fixture
def console(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Console:
    return Console(capsysbinary, monkeypatch)


@pytest.fixture(autouse=True)
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files with old names, and one without."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(OLD)
    (tmp_path / "other.py").write_text(OTHER)
    (tmp_path / "healthy.py").write_text("from jax.experimental import pallas as pl\n")
    return tmp_path


def test_what_breaks_what_warns_and_what_was_broken(console: Console) -> None:
    status, out, error = console.call("survey", "--from", "0.8.2", "--to", "0.12", ".")
    assert (status, error) == (0, "")
    lines = out.decode().splitlines()
    assert lines[0] == "jax 0.8.2 to 0.12.0.1: 2 of 3 files use what changes"
    assert "Breaks: works on jax 0.8.2, fails on 0.12.0.1 (3 uses of 1 form)" in lines
    assert "     3      2  0.10.0         2/3  API001 `pltpu.ANY`: now `pl.ANY`" in lines
    assert "        2 in k.py" in lines
    assert "        1 in other.py" in lines
    assert "Warns: deprecated on jax 0.12.0.1 (1 use of 1 form)" in lines
    assert (
        "     1      1  0.11.2         1/1  API001 `pl.reciprocal`: now `pltpu.reciprocal`" in lines
    )
    assert "Broken: fails on jax 0.8.2 already (1 use of 1 form)" in lines
    assert "4 of 5 uses are repaired by: pallas-fix apply --jax 0.12.0.1 ." in lines
    assert (
        "  k.py:5: API001 `pltpu.ANY` is deprecated since jax 0.8.2, gone since 0.10.0: "
        in out.decode()
    )


def test_only_what_changes_on_the_way(console: Console) -> None:
    _, out, _ = console.call("survey", "--from", "0.4.35", "--to", "0.6.1", ".")
    assert out.decode() == "jax 0.4.35 to 0.6.1: 0 of 3 files use what changes\n"


def test_for_programs(console: Console) -> None:
    status, out, _ = console.call("survey", "--from", "0.8", "--output", "json", ".")
    found = json.loads(out)
    assert status == 0
    assert (found["from"], found["to"], found["files"]) == ("0.8.3", "0.12.0.1", 3)
    lots = {(use["path"], use["line"]): (use["lot"], use["repaired"]) for use in found["uses"]}
    assert lots == {
        ("k.py", 5): ("breaks", False),
        ("k.py", 9): ("warns", True),
        ("k.py", 13): ("breaks", True),
        ("k.py", 14): ("broken", True),
        ("other.py", 3): ("breaks", True),
    }


def test_what_it_calls_repaired_is_repaired(console: Console) -> None:
    console.apply("--jax", "0.12.0.1", ".")
    _, out, _ = console.call("survey", "--from", "0.8", "--output", "json", ".")
    assert [use["line"] for use in json.loads(out)["uses"]] == [5]


def test_a_file_that_cannot_be_parsed(console: Console, tree: Path) -> None:
    (tree / "odd.py").write_text("import pallas(\n")
    status, out, _ = console.call("survey", "--from", "0.8", ".")
    assert status == 2
    assert "error: odd.py" in out.decode()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "0.12", "--to", "0.8"), "is not older than"),
        (("--from", "new"), "is no jax version"),
        (("--from", "0.3.1"), "is older than all that is known"),
        ((), "Missing option '--from'"),
    ],
)
def test_versions_that_make_no_way(console: Console, words: tuple[str, ...], says: str) -> None:
    status, _, error = console.call("survey", *words, ".")
    assert status == 2
    assert says in error
