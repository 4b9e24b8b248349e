"""Which jax the code must run on: what the user says, what is locked, what is installed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from pallas_fix.versions import NEWEST, parse_jax

_LOCKED = re.compile(r'^name = "jax"\s*\nversion = "([^"\n]+)"', re.MULTILINE)
_REQUIRED = re.compile(r"^jax(?:\[[^\]\n]*\])?\s*===?\s*([^\s;,\\#]+)", re.MULTILINE)
_LOCKS = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "Pipfile.lock")
_ASK = "import importlib.metadata as m; print(m.version('jax'))"


@dataclass(frozen=True)
class Wanted:
    """The jax versions that the code must run on, oldest first, and who says so.

    `closed` tells a range with an end, all of which counts, from one that only goes up: there a
    fix may raise the lowest version that works.
    """

    versions: tuple[Version, ...]
    origin: str
    closed: bool = True

    def __str__(self) -> str:
        low, high = self.versions[0], self.versions[-1]
        return f"jax {low}" if low == high else f"jax {low} to {high}"


def wanted_jax(asked: str, root: Path, python: Path, origin: str = "--jax") -> Wanted:
    """What `asked` says, else the lock file of the project, else the jax of `python`.

    `origin` tells who asked. A lock file for several environments may hold several: then the one
    that `python` has, else the newest of them. Where nobody knows, the newest release that the
    rules know. Raises ValueError where `asked` is no version and no range.
    """
    if asked:
        return Wanted(parse_jax(asked), origin, closed=not _open(asked))
    for file in _files(root):
        versions = _locked(file)
        if len(versions) == 1:
            return Wanted(versions, file.name)
        if versions:
            return Wanted((_either(_installed(python), versions),), file.name)
    installed = _installed(python)
    if installed is not None:
        return Wanted((installed,), f"installed for {python}")
    return Wanted((NEWEST,), "the newest known; no jax is locked or installed")


def _either(installed: Version | None, versions: tuple[Version, ...]) -> Version:
    return installed if installed is not None and installed in versions else versions[-1]


def _open(asked: str) -> bool:
    try:
        return SpecifierSet(asked).contains("9999")
    except InvalidSpecifier:
        return False


def _files(root: Path) -> Iterator[Path]:
    """The lock files that speak for `root`: its own, or those of the workspace above it."""
    for folder in (root, *root.parents):
        yield from (folder / name for name in _LOCKS)
        yield from sorted(folder.glob("requirements*.txt"))
        if os.path.exists(folder / ".git"):
            return


def _locked(file: Path) -> tuple[Version, ...]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    found = _pipfile(text) if file.name == "Pipfile.lock" else _texts(file, text)
    versions: set[Version] = set()
    for word in found:
        try:
            versions.update(parse_jax(f"=={word}" if "*" in word else word))
        except (ValueError, InvalidVersion):
            continue
    return tuple(sorted(versions))


def _texts(file: Path, text: str) -> list[str]:
    pattern = _REQUIRED if file.suffix == ".txt" else _LOCKED
    return [match[1] for match in pattern.finditer(text)]


def _pipfile(text: str) -> list[str]:
    import json

    try:
        document = json.loads(text)
        entries = [document.get(section, {}).get("jax", {}) for section in ("default", "develop")]
        return [entry["version"].removeprefix("==") for entry in entries if "version" in entry]
    except (ValueError, AttributeError, TypeError):
        return []


def _installed(python: Path) -> Version | None:
    """The version of the jax that `python` would import."""
    try:
        return Version(_metadata(python))
    except InvalidVersion:
        return None


def _metadata(python: Path) -> str:
    if os.path.abspath(python) == os.path.abspath(sys.executable):
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("jax")
        except PackageNotFoundError:
            return ""
    import subprocess

    try:
        done = subprocess.run(
            [python, "-c", _ASK],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip()
