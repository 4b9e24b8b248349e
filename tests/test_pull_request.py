"""One pull request from base to branch: exactly its lines are told of, in every format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from console import Console
from kernels import MXU
from repository import Repository

ROOT = Path(__file__).parents[1]
BROKEN = MXU.replace("pltpu.ACC(0)", "pltpu.VMEM")
OLD_NAME = (
    "from jax.experimental.pallas import tpu as pltpu\n\nparams = pltpu.TPUCompilerParams()\n"
)
FORMATS = ("json", "sarif", "github", "rdjson", "markdown")
EXPECTED = {("edited.py", "API001"), ("new.py", "TPU001"), ("moved/renamed.py", "API001")}
"""What the branch has brought: a line in an old file, a new file, a line in a renamed one."""


@pytest.fixture
def console(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Console:
    return Console(capsysbinary, monkeypatch)


@pytest.fixture
def pull_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A base with old trouble, and a branch that brings more of it."""
    repository = Repository(tmp_path)
    repository.write("requirements.txt", "jax==0.12.0.1\n")
    repository.write("edited.py", BROKEN)
    repository.write("untouched.py", BROKEN)
    repository.write("renamed.py", BROKEN)
    repository.write("deleted.py", OLD_NAME)
    repository.commit("base")
    repository.git("checkout", "-q", "-b", "branch")
    repository.write("edited.py", BROKEN + "\n\nPARAMS = pltpu.TPUCompilerParams()\n")
    repository.write("new.py", (ROOT / "examples/tpu_matmul.py").read_bytes())
    (tmp_path / "moved").mkdir()
    repository.git("mv", "renamed.py", "moved/renamed.py")
    repository.write("moved/renamed.py", BROKEN + "\n\nPARAMS = pltpu.TPUCompilerParams()\n")
    repository.git("rm", "-q", "deleted.py")
    repository.commit("branch")
    repository.git("checkout", "-q", "main")
    repository.write("later.py", BROKEN)
    repository.commit("the base goes on")
    repository.git("checkout", "-q", "branch")
    monkeypatch.chdir(tmp_path)
    return repository


def found_in(name: str, text: str) -> set[tuple[str, str]]:
    """The files and rules that a document tells of."""
    if name == "json":
        return {
            (file["path"], finding["code"])
            for file in json.loads(text)["files"]
            for finding in file["findings"]
        }
    if name == "sarif":
        return {
            (
                result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
                result["ruleId"],
            )
            for result in json.loads(text)["runs"][0]["results"]
        }
    if name == "rdjson":
        return {
            (diagnostic["location"]["path"], diagnostic["code"]["value"])
            for diagnostic in json.loads(text)["diagnostics"]
        }
    if name == "github":
        return {
            (match[2], match[1])
            for match in re.finditer(r"^::\w+ title=(\w+)[^,]*,file=([^,]+)", text, re.MULTILINE)
        }
    return {
        (match[1], match[2])
        for match in re.finditer(r"<summary><code>([^:<]+):\d+:\d+</code> (\w+)", text)
    }


def test_exactly_its_lines_in_every_format(console: Console, pull_request: Repository) -> None:
    outputs = [f"--output={name}={name}.out" for name in FORMATS]
    status, _, error = console.apply("--check", "--since", "main", *outputs, ".")
    assert status == 1
    told = set(re.findall(r"^(\S+\.py):\d+:\d+: (\w+)", error, re.MULTILINE))
    assert told == EXPECTED
    for name in FORMATS:
        assert found_in(name, Path(f"{name}.out").read_text()) == EXPECTED, name


def test_its_diff_touches_nothing_else(console: Console, pull_request: Repository) -> None:
    _, diff, _ = console.apply("--diff", "--since", "main", ".")
    changed = set(re.findall(rb"^\+\+\+ b/(\S+)$", diff, re.MULTILINE))
    assert changed == {b"edited.py", b"new.py", b"moved/renamed.py"}
    (pull_request.folder / "fix.diff").write_bytes(diff)
    pull_request.git("apply", "fix.diff")
    assert console.apply("--check", "--since", "main", ".")[0] == 0
    assert "pltpu.VMEM" in (pull_request.folder / "edited.py").read_text()
