"""The hooks of `.pre-commit-hooks.yaml`, run by pre-commit itself in a repository of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernels import MXU

ROOT = Path(__file__).parents[1]
BROKEN = MXU.replace("pltpu.ACC(0)", "pltpu.VMEM")
PLAUSIBLE = (ROOT / "tests/fixtures/TPU001/loop_over_both_mxus/before.py").read_text()

Hook = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    """Runs one hook over the files of a new repository, as its config asks for it."""
    environment = os.environ | {
        "HOME": str(tmp_path),
        "PRE_COMMIT_HOME": str(tmp_path / "cache"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.com",
    }

    def call(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)

    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / ".pre-commit-hooks.yaml").write_bytes((ROOT / ".pre-commit-hooks.yaml").read_bytes())
    project = tmp_path / "project"
    project.mkdir()
    # What the hook finds must not depend on the jax that is installed here.
    (project / "requirements.txt").write_text("jax==0.12.0.1\n")
    for folder in (hooks, project):
        call("git", "init", "-q", cwd=folder)
        call("git", "add", ".", cwd=folder)
        call("git", "commit", "-q", "--allow-empty", "-m", "first", cwd=folder)
    revision = call("git", "rev-parse", "HEAD", cwd=hooks).stdout.strip()

    def run(name: str, **files: str) -> subprocess.CompletedProcess[str]:
        # `language: system` takes the pallas-fix that is being tested.
        (project / ".pre-commit-config.yaml").write_text(
            f"repos:\n- repo: {hooks}\n  rev: {revision}\n"
            f"  hooks:\n  - id: {name}\n    language: system\n"
        )
        for stem, text in files.items():
            (project / f"{stem}.py").write_text(text)
        call("git", "add", ".", cwd=project)
        return call(sys.executable, "-m", "pre_commit", "run", cwd=project)

    return run


def test_what_is_certain_is_repaired_and_the_commit_is_stopped(hook: Hook, tmp_path: Path) -> None:
    done = hook("pallas-fix", k=BROKEN)
    assert done.returncode == 1
    assert "files were modified by this hook" in done.stdout
    assert "k.py" in done.stdout
    assert "TPU001" in done.stdout
    assert "pltpu.ACC(0)" in (tmp_path / "project" / "k.py").read_text()
    assert hook("pallas-fix").returncode == 0


def test_what_is_plausible_is_shown_and_not_written(hook: Hook, tmp_path: Path) -> None:
    done = hook("pallas-fix", k=PLAUSIBLE)
    assert done.returncode == 1
    assert "+" in done.stdout
    assert "@@" in done.stdout
    assert (tmp_path / "project" / "k.py").read_text() == PLAUSIBLE


def test_the_check_writes_nothing(hook: Hook, tmp_path: Path) -> None:
    done = hook("pallas-fix-check", k=BROKEN)
    assert done.returncode == 1
    assert "TPU001" in done.stdout
    assert (tmp_path / "project" / "k.py").read_text() == BROKEN
    assert hook("pallas-fix-check", k=MXU).returncode == 0
