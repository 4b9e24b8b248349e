"""What an interpreter would import, told without importing any of it: for the keys of the cache."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pallas_fix import __version__
from pallas_fix.targets import Target
from pallas_fix.verify.environment import environment

_ASK = """
import json, sys, sysconfig
paths = sysconfig.get_paths()
library = [paths["stdlib"], paths["platstdlib"]]
print()
print(json.dumps({"version": sys.version, "path": sys.path, "library": library}))
"""

_PACKAGES = ("site-packages", "dist-packages")

_OF_THE_SHELL = frozenset(("HOME", "TMPDIR", "PATH", "VIRTUAL_ENV"))
"""Variables that differ from shell to shell; what compilers PATH finds is looked at instead."""


@dataclass(frozen=True)
class Installed:
    """An interpreter with its packages: where they are, and a digest that changes with them."""

    folders: tuple[str, ...]
    digest: str

    def holds(self, path: str) -> bool:
        """True if a file is one of the interpreter or of its packages, which `digest` covers."""
        return any(path.startswith(folder + os.sep) for folder in self.folders)


def installed(python: Path, target: Target) -> Installed | None:
    """What a worker for the target imports; None where that cannot be told.

    So it is for an interpreter that does not start, and for a jax that is not installed as a
    package, or not to stay: its files may change from one run to the next.
    """
    variables = environment(target, Path(), device=False)
    return _installed(python, tuple(sorted(variables.items())))


@cache
def _installed(python: Path, items: tuple[tuple[str, str], ...]) -> Installed | None:
    variables = dict(items)
    told = _ask(python, variables)
    if told is None:
        return None
    path = [str(folder) for folder in told["path"]]
    packages = [folder for folder in path if os.path.basename(folder) in _PACKAGES]
    if not all(_to_stay(name, path, packages) for name in ("jax", "jaxlib")):
        return None
    identity = [
        told["version"],
        path,
        [one for one in items if one[0] not in _OF_THE_SHELL],
        list(_records(packages)),
        list(_compilers(variables)),
        _processor(),
        __version__,
        _code(),
    ]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    zipped = [folder for folder in path if folder.endswith(".zip")]
    return Installed(tuple(dict.fromkeys((*packages, *told["library"], *zipped))), digest)


def _ask(python: Path, variables: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        done = subprocess.run(
            [python, "-P", "-c", _ASK],
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            env=variables,
            timeout=30,
        )
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
    return told


def _to_stay(name: str, path: Sequence[str], packages: Sequence[str]) -> bool:
    """True if the first package of that name on the path is one that was installed as a whole."""
    folder = next((folder for folder in path if os.path.isdir(os.path.join(folder, name))), "")
    if folder not in packages or os.path.islink(os.path.join(folder, name)):
        return False
    return any(Path(folder).glob(f"{name}-*.dist-info/RECORD"))


def _records(packages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names with versions of what is installed, each with a digest of its list of files.

    The list holds the digest of each file, so the same packages give the same on any machine.
    """
    for folder in packages:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info", ".egg-link")):
                try:
                    record = Path(folder, name, "RECORD").read_bytes()
                except OSError:
                    record = b""
                yield name, hashlib.sha256(record).hexdigest()


def _compilers(variables: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of the compilers that no package brings."""
    homes = [variables.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")]
    cuda = [os.path.join(home, "bin") for home in (*homes, "/usr/local/cuda") if home]
    places = [variables.get("TPU_LIBRARY_PATH")]
    for name in ("ptxas", "nvlink"):
        places.append(shutil.which(name, path=variables.get("PATH", os.defpath)))
        places.append(shutil.which(name, path=os.pathsep.join(cuda)))
    for place in filter(None, places):
        try:
            real = os.path.realpath(place)
            status = os.stat(real)
        except (OSError, ValueError):
            continue
        yield real, status.st_size, status.st_mtime_ns


@cache
def _code() -> str:
    """A digest of our code that does the jobs and reads their answers."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _processor() -> list[str]:
    """What decides how XLA computes on this CPU: its kind, its instructions, how many cores."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    told = [sys.platform, platform.machine(), str(count)]
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(1 << 13).partition("\n\n")[0]
    except OSError:
        return told
    wanted = ("model name", "flags", "Features", "CPU part")  # the last two are those of Arm
    return told + [line for line in first.split("\n") if line.startswith(wanted)]
