"""The recipes of `docs/pr-review.md`: what can run on one machine runs here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kernels import MXU
from repository import Repository

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "pr-review.md").read_text()
BROKEN = MXU.replace("pltpu.ACC(0)", "pltpu.VMEM")
SHELL: list[str] = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
LOCAL = [block for block in SHELL if "reviewdog" not in block]
STATUS = {"--check .": 1, "--check --since main .": 1}
"""What a recipe that may fail ends with in a repository with trouble; the others succeed."""


@pytest.fixture
def project(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "project")
    repository.write("requirements.txt", "jax==0.12.0.1\n")
    repository.write("k.py", "x = 1\n")
    repository.commit("base")
    repository.git("checkout", "-q", "-b", "branch")
    repository.write("k.py", BROKEN)
    repository.commit("branch")
    return repository


def run(script: str, project: Repository, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """A recipe, with the tool of this environment, which verifies nothing here."""
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    wrapper = tools / "pallas-fix"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m pallas_fix "$@"\n')
    wrapper.chmod(0o755)
    return subprocess.run(
        ["bash", "-e", "-c", script.replace("apply --", "apply --no-verify --")],
        cwd=project.folder,
        env=os.environ | {"PATH": os.pathsep.join((str(tools), os.environ["PATH"]))},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("script", LOCAL)
def test_the_recipe_does_what_it_says(script: str, project: Repository, tmp_path: Path) -> None:
    done = run(script, project, tmp_path)
    expected = next((s for end, s in STATUS.items() if script.rstrip().endswith(end)), 0)
    assert done.returncode == expected, done.stderr
    if "git apply" in script:
        assert "pltpu.ACC(0)" in (project.folder / "k.py").read_text()
    for file in re.findall(r"=([\w.-]+\.(?:json|md|sarif))", script):
        assert (project.folder / file).read_text()


def test_the_action_has_the_inputs_that_the_page_gives_it() -> None:
    yaml = import_module("yaml")
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    [workflow] = [
        yaml.safe_load(block)
        for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        if "jobs:" in block
    ]
    [step] = [
        step
        for step in workflow["jobs"]["pallas-fix"]["steps"]
        if "/pallas-fix@" in step.get("uses", "")
    ]
    assert step["with"].keys() <= inputs.keys()


def test_the_hooks_that_the_page_names_exist() -> None:
    hooks = import_module("yaml").safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    named = set(re.findall(r"- id: ([\w-]+)", PAGE))
    assert named <= {hook["id"] for hook in hooks}
