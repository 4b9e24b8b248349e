"""The steps of `action.yml`, run here as a runner would run them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from kernels import MXU
from repository import Repository

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = import_module("yaml").safe_load((ROOT / "action.yml").read_text())
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
BROKEN = MXU.replace("pltpu.ACC(0)", "pltpu.VMEM")


@dataclass(frozen=True)
class Done:
    """What the second step has left behind."""

    status: int
    log: str
    outputs: Mapping[str, str]
    summary: str
    calls: list[list[str]]


Step = Callable[..., Done]


@pytest.fixture
def project(tmp_path: Path) -> Repository:
    """A repository with a broken kernel, which says what jax it is for."""
    repository = Repository(tmp_path / "project")
    repository.write("k.py", BROKEN)
    repository.write("requirements.txt", "jax==0.12.0.1\n")
    repository.commit("first")
    return repository


@pytest.fixture
def step(tmp_path: Path, project: Repository) -> Step:
    """Runs the second step with some inputs, in the repository."""
    tools = tmp_path / "bin"
    tools.mkdir()
    calls = tmp_path / "calls"
    wrapper = tools / "pallas-fix"
    # The arguments are written down; the tool is that of this environment.
    wrapper.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        f"print(json.dumps(sys.argv[1:]), file=open({str(calls)!r}, 'a'))\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'pallas_fix', *sys.argv[1:]])\n"
    )
    wrapper.chmod(0o755)

    def run(fork: str = "", **inputs: str) -> Done:
        given = {name: str(of.get("default", "")) for name, of in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        calls.write_text("")
        values = {f"inputs.{name}": value for name, value in given.items()}
        values["github.event.pull_request.head.repo.fork"] = fork
        environment = {
            name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)
            for name, text in STEPS["apply"]["env"].items()
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", STEPS["apply"]["run"]],
            cwd=project.folder,
            env=os.environ
            | {name: str(file) for name, file in files.items()}
            | environment
            | {"PATH": os.pathsep.join((str(tools), os.environ["PATH"])), "GITHUB_ACTIONS": "true"},
            capture_output=True,
            text=True,
        )
        outputs = dict(
            line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines()
        )
        written = [json.loads(line) for line in calls.read_text().splitlines()]
        summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return Done(done.returncode, done.stdout + done.stderr, outputs, summary, written)

    return run


def test_findings_fail_the_job_and_are_told_everywhere(step: Step, project: Repository) -> None:
    done = step(verify="false", sarif="found.sarif")
    assert (done.status, done.outputs) == (1, {"status": "1"})
    assert "::error" in done.log or "::warning" in done.log
    assert "file=k.py" in done.log
    assert "TPU001" in done.summary
    found = json.loads((project.folder / "found.sarif").read_text())
    assert [result["ruleId"] for result in found["runs"][0]["results"]] == ["TPU001"]
    assert (project.folder / "k.py").read_text() == BROKEN


def test_a_clean_tree_passes(step: Step, project: Repository) -> None:
    project.write("k.py", MXU)
    done = step(verify="false")
    assert (done.status, done.outputs) == (0, {"status": "0"})


def test_only_what_a_branch_changed(step: Step, project: Repository) -> None:
    project.git("checkout", "-q", "-b", "branch")
    project.write("new.py", BROKEN)
    project.commit("second")
    done = step(verify="false", since="main")
    assert done.status == 1
    assert "file=new.py" in done.log
    assert "file=k.py" not in done.log


@pytest.mark.parametrize(
    ("fork", "inputs", "verifies"),
    [
        ("", {}, True),
        ("false", {}, True),
        ("true", {}, False),
        ("true", {"verify_forks": "true"}, True),
        ("", {"verify": "false"}, False),
        ("", {"verify": "yes"}, False),
    ],
)
def test_the_kernels_of_a_fork_are_not_run(
    step: Step, project: Repository, fork: str, inputs: dict[str, str], verifies: bool
) -> None:
    project.write("k.py", "x = 1\n")
    [call] = step(fork, **inputs).calls
    assert ("--no-verify" not in call) is verifies


def test_inputs_are_arguments_and_never_code(step: Step, project: Repository) -> None:
    project.write("a b.py", BROKEN)
    project.write("$(touch x).py", "x = 1\n")
    done = step(
        verify="false",
        paths="a b.py\n$(touch x).py\n",
        select='TPU"; touch y; "',
        targets="tpu7x\n`touch z`",
        args="--exclude=a;b\n",
    )
    [call] = done.calls
    assert call[-3:] == ["--", "a b.py", "$(touch x).py"]
    assert '--select=TPU"; touch y; "' in call
    assert "--target=`touch z`" in call
    assert done.status == 2
    assert not {"x", "y", "z"} & {file.name for file in project.folder.iterdir()}


def test_lists_become_several_arguments(step: Step, project: Repository) -> None:
    project.write("k.py", "x = 1\n")
    done = step(verify="false", targets="tpu7x\nv6e\n", args="--statistics\n--exclude=old/\n")
    [call] = done.calls
    assert [word for word in call if word.startswith("--target")] == [
        "--target=tpu7x",
        "--target=v6e",
    ]
    assert {"--statistics", "--exclude=old/"} <= set(call)
    assert done.status == 0


def test_it_is_installed_from_its_own_checkout() -> None:
    script = STEPS["install"]["run"]
    assert '"$GITHUB_ACTION_PATH"' in script
    assert "inputs" not in script


def test_no_expression_stands_in_a_script() -> None:
    assert not any("${{" in step["run"] for step in STEPS.values())
