"""Remembers what jobs have answered, on disk, for as long as nothing that they read has changed.

An entry is the outcome of one job: one version of one file, one case, one target. Its key holds the
job, the text of the file, the interpreter with its packages, and the code of the worker. It lists
the files that the job read, with their digests, and counts only while these are the same. Outcomes
that depend on the moment are not kept: a time-out, a crash, a stage that was not available.

Whatever is wrong with the folder or with an entry, the worst that happens is that a job is done.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pallas_fix.targets import Target
from pallas_fix.verify.installed import installed
from pallas_fix.verify.jobs import Job
from pallas_fix.verify.process import Outcome
from pallas_fix.verify.verdict import Hazard, Resources, Stage, StageResult

FORMAT = 1

MOST_BYTES = 64 << 20
"""What the folder may hold when a run ends; what was not used for longest goes first."""

_VOLATILE = frozenset(("root", "search", "numbers", "folder", "origin"))
"""What a job says of places that are new in every run."""


def default_folder() -> Path:
    """`$PALLAS_FIX_CACHE_DIR`, else `pallas-fix` in `$XDG_CACHE_HOME` or `~/.cache`."""
    own = os.environ.get("PALLAS_FIX_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "pallas-fix"


class Cache:
    """Outcomes by job, below `folder`. May be used by several threads and processes at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}
        self._written = False

    def find(self, python: Path, target: Target, job: Job) -> Outcome | None:
        """The outcome of the job, if it is known."""
        path = self._path(python, target, job)
        if path is None:
            return None
        try:
            head, _, body = path.read_text(encoding="utf-8").partition("\n")
            if head != _sum(body):
                return None
            entry = json.loads(body)
            if any(self._digest(job, name) != known for name, known in entry["files"].items()):
                return None
            found = _decode(entry["outcome"])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        with suppress(OSError):
            os.utime(path)
        return found

    def keep(self, python: Path, target: Target, job: Job, outcome: Outcome) -> None:
        """Remember the outcome of a job, if another run would have the same."""
        path = self._path(python, target, job) if outcome.repeatable else None
        if path is None:
            return
        known = installed(python, target)
        files = {
            name: self._digest(job, name)
            for name in outcome.files
            if known is not None and not known.holds(name)
        }
        body = json.dumps({"files": files, "outcome": asdict(outcome)}, default=sorted)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._mark()
            descriptor, name = tempfile.mkstemp(dir=path.parent)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(f"{_sum(body)}\n{body}")
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
            self._written = True

    def close(self) -> None:
        """Keep the folder small."""
        if not self._written:
            return
        entries = sorted(_entries(self._folder), reverse=True)
        room = MOST_BYTES
        for _, size, path in entries:
            room -= size
            if room < 0:
                with suppress(OSError):
                    os.unlink(path)

    def _path(self, python: Path, target: Target, job: Job) -> Path | None:
        known = installed(python, target)
        if known is None:
            return None
        lasting = {name: value for name, value in job.items() if name not in _VOLATILE}
        text = self._digest(job, job["file"])
        search = [os.path.relpath(folder, job["root"]) for folder in job["search"]]
        key = [FORMAT, known.digest, asdict(target), lasting, search, text]
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self._folder / name[:2] / name[2:]

    def _digest(self, job: Job, name: str) -> str:
        """The digest of a file, relative to the job's project or absolute; empty if it is gone."""
        path = os.path.join(job["root"], name)
        if path not in self._digests:
            try:
                with open(path, "rb") as file:
                    self._digests[path] = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError:
                self._digests[path] = ""
        return self._digests[path]

    def _mark(self) -> None:
        """Tell backup programs to leave the folder out (bford.info/cachedir)."""
        tag = self._folder / "CACHEDIR.TAG"
        if not tag.exists():
            tag.write_text("Signature: 8a477f597d28d172789f06886806bc55\n", encoding="ascii")


def _sum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _entries(folder: Path) -> Iterator[tuple[float, int, str]]:
    """Yield when each entry was last used, its size, and its path."""
    with suppress(OSError):
        for shard in os.scandir(folder):
            if shard.is_dir(follow_symlinks=False):
                for entry in os.scandir(shard.path):
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_mtime, status.st_size, entry.path


def _decode(told: dict[str, Any]) -> Outcome:
    return Outcome(
        **told
        | {
            "stages": [
                StageResult(**one | {"stage": Stage(one["stage"]), "cached": True})
                for one in told["stages"]
            ],
            "entered": frozenset(told["entered"]),
            "hazards": tuple(Hazard(**one) for one in told["hazards"]),
            "resources": tuple(Resources(**one) for one in told["resources"]),
            "files": frozenset(told["files"]),
            "tools": tuple(told["tools"]),
        }
    )
