"""The README's first command on the two broken kernels, and what follows from its diff."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

pytestmark = [pytest.mark.compile, pytest.mark.newest]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git work tree that holds the examples and nothing else."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def pallas_fix(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XDG_CACHE_HOME": str(project / ".cache")}
    return subprocess.run(
        [sys.executable, "-m", "pallas_fix", *arguments],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_the_diff_comes_with_evidence_and_applies(project: Path) -> None:
    shown = pallas_fix(project, "apply", "--diff", "examples/")

    assert shown.returncode == 1, shown.stderr
    assert "-        acc[...] = product.reshape(N, M) * SCALE" in shown.stdout
    assert "-        scratch_shapes=[pltpu.VMEM((BLOCK_M, N), jnp.float32)]," in shown.stdout
    assert "Expected an accumulator ref, got Ref<vmem>{float32[32,256]}" in shown.stderr
    assert "compiled for tpu7x" in shown.stderr
    assert "compiled for h100" in shown.stderr

    subprocess.run(["git", "apply"], cwd=project, input=shown.stdout, text=True, check=True)
    gate = pallas_fix(project, "apply", "--check", "examples/")

    assert gate.returncode == 0, gate.stdout + gate.stderr


def test_apply_writes_what_the_diff_shows(project: Path) -> None:
    shown = pallas_fix(project, "apply", "--diff", "examples/")
    applied = pallas_fix(project, "apply", "examples/")
    written = {path.name: path.read_bytes() for path in (project / "examples").glob("*.py")}
    shutil.copytree(EXAMPLES, project / "examples", dirs_exist_ok=True)
    subprocess.run(["git", "apply"], cwd=project, input=shown.stdout, text=True, check=True)

    assert applied.returncode == 0, applied.stderr
    assert written == {path.name: path.read_bytes() for path in (project / "examples").glob("*.py")}
