"""What an interpreter would import, told without importing any of it: for the keys of the cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pallas_fix import __version__
from pallas_fix.targets import Target
from pallas_fix.verify.environment import environment

_ASK = """
import json, os, platform, sys

packages = []
for folder in sys.path:
    try:
        names = os.listdir(folder or ".")
    except OSError:
        continue
    for name in sorted(names):
        if name.endswith((".dist-info", ".egg-info")):
            path = os.path.join(folder, name)
            try:
                status = os.stat(os.path.join(path, "RECORD"))
            except OSError:
                status = os.stat(path)
            packages.append([path, status.st_mtime_ns, status.st_size])
status = os.stat(sys.executable)
print(json.dumps({
    "prefixes": [sys.prefix, sys.base_prefix, sys.exec_prefix],
    "identity": [sys.version, platform.machine(), status.st_mtime_ns, status.st_size, packages],
}))
"""


@dataclass(frozen=True)
class Installed:
    """An interpreter with its packages: where they are, and a digest that changes with them."""

    prefixes: tuple[str, ...]
    digest: str

    def holds(self, path: str) -> bool:
        """True if a file is one of the interpreter or of its packages, which `digest` covers."""
        return any(path.startswith(prefix + os.sep) for prefix in self.prefixes)


@cache
def installed(python: Path, target: Target) -> Installed | None:
    """What a worker for the target imports; None where the interpreter does not say."""
    variables = environment(target, Path(), device=False)
    try:
        done = subprocess.run(
            [python, "-P", "-c", _ASK],
            capture_output=True,
            check=True,
            stdin=subprocess.DEVNULL,
            env=variables,
            timeout=30,
        )
        told = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    prefixes = [os.path.realpath(prefix) for prefix in told["prefixes"]]
    for name in ("HOME", "TMPDIR"):
        variables.pop(name, None)
    identity = [told["identity"], sorted(variables.items()), _processor(), __version__, _worker()]
    return Installed(
        tuple(dict.fromkeys((*told["prefixes"], *prefixes))),
        hashlib.sha256(json.dumps(identity).encode()).hexdigest(),
    )


@cache
def _worker() -> str:
    """A digest of the code that does the jobs."""
    digest = hashlib.sha256()
    for path in sorted((Path(__file__).parent / "worker").rglob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _processor() -> str:
    """The model of the processor, whose instructions may round in their own way."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("model name", "Features"))), "")
