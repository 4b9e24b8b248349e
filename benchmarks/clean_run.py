"""What a run costs that finds nothing to do: CPU seconds over the installed jax source tree.

    python benchmarks/clean_run.py [--repeat N]

The tree is copied first, so that the rules about `site-packages` and git do not matter. The
best of N runs counts. Reading and `ast.parse` are given for comparison.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def jax_source() -> Path:
    """The folder of the installed jax, found without importing it."""
    spec = importlib.util.find_spec("jax")
    if spec is None or spec.origin is None:
        raise SystemExit("jax is not installed")
    return Path(spec.origin).parent


def best(repeat: int, work: Callable[[], None]) -> tuple[float, float]:
    """CPU seconds (with those of child processes) and wall seconds of the cheapest run."""
    return min(_once(work) for _ in range(repeat))


def _once(work: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), _cpu()
    work()
    return _cpu() - cpu, time.perf_counter() - wall


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pallas_fix(*arguments: str) -> None:
    """Run the tool; an exit status of 2 ends the benchmark, findings do not."""
    command = [sys.executable, "-m", "pallas_fix", *arguments]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure a run that finds nothing.")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each row (default 3)")
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory(prefix="pallas-fix-") as name:
        tree = Path(name) / "jax"
        shutil.copytree(jax_source(), tree, ignore=shutil.ignore_patterns("__pycache__"))
        files = sorted(tree.rglob("*.py"))
        data = {path: path.read_bytes() for path in files}
        pallas = [text for text in data.values() if b"pallas" in text]
        print(
            f"{len(files)} files, {sum(map(len, data.values())) / 1e6:.1f} MB, of which "
            f"{len(pallas)} ({sum(map(len, pallas)) / 1e6:.1f} MB) hold the word 'pallas'\n"
        )
        rows: dict[str, Callable[[], None]] = {
            "python -c pass": lambda: _python("pass"),
            "pallas-fix --version": lambda: pallas_fix("--version"),
            "read every file": lambda: _read(files),
            "ast.parse every Pallas file": lambda: _parse(pallas),
            "pallas-fix apply --check": lambda: pallas_fix(
                "apply", "--check", "--no-verify", str(tree)
            ),
        }
        print(f"{'':32} {'CPU s':>8} {'wall s':>8}")
        for label, work in rows.items():
            cpu, wall = best(repeat, work)
            print(f"{label:32} {cpu:8.2f} {wall:8.2f}")


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def _read(files: list[Path]) -> None:
    for path in files:
        path.read_bytes()


def _parse(texts: list[bytes]) -> None:
    for text in texts:
        ast.parse(text)


if __name__ == "__main__":
    main()
