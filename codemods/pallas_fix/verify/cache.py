"""Remembers what jobs have answered, on disk, for as long as nothing that they read has changed.

An entry is the outcome of one job: one version of one file, one case, one target. Its key holds the
job, the text of the file, the interpreter with its packages, and our own code. It lists what the
job looked at, with digests: files, folders, and what was not there. It counts only while these are
the same. Outcomes that depend on the moment are not kept: a time-out, a crash, a lack of memory.

Whatever is wrong with the folder or with an entry, the worst that happens is that a job is done.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
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

MOST_BYTES = 64 << 20
"""What the folder may hold when a run ends; what was not used for longest goes first."""

_VOLATILE = frozenset(("root", "search", "numbers", "folder", "origin"))
"""What a job says of places that are new in every run."""

_LARGE = 64 << 20
"""Bytes of a file beyond which its size and time tell whether it is the same."""

_OF_THE_MOMENT = re.compile(
    "no compiler for|[Oo]ut of memory|bad_alloc|Cannot allocate memory|No space left"
    "|start new thread|Resource temporarily unavailable|Too many open files"
)
"""What is said of a machine that was busy, and not of a kernel."""

_ENTRY = re.compile("[0-9a-f]{62}|new-.*")


def default_folder() -> Path:
    """`$PALLAS_FIX_CACHE_DIR`, else `pallas-fix` in `$XDG_CACHE_HOME` or `~/.cache`.

    A folder that cannot be made where the user has no home.
    """
    own = os.environ.get("PALLAS_FIX_CACHE_DIR")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification has it ignored
        home = os.path.expanduser("~")
        base = os.path.join(home, ".cache") if os.path.isabs(home) else os.devnull
    return Path(base, "pallas-fix")


class Cache:
    """Outcomes by job, below `folder`. May be used by several threads and processes at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "verdicts"  # a folder of its own: what is old there is removed
        self._digests: dict[tuple[int, ...], str] = {}
        self._written = False

    def find(self, python: Path, target: Target, job: Job) -> Outcome | None:
        """The outcome of the job, if it is known."""
        path = self._path(python, target, job)
        if path is None:
            return None
        try:
            head, _, body = path.read_text(encoding="utf-8").partition("\n")
            if head != _sum(path, body):
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
        known = installed(python, target) if _repeatable(outcome) else None
        path = self._path(python, target, job)
        if known is None or path is None:
            return
        names = {_inside(job, name) for name in outcome.files if not known.holds(name)}
        files = {name: self._digest(job, name) for name in sorted(names)}
        told = asdict(outcome) | {"files": ()}
        body = json.dumps({"files": files, "outcome": told}, default=sorted)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._mark()
            descriptor, name = tempfile.mkstemp(prefix="new-", dir=path.parent)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(f"{_sum(path, body)}\n{body}")
                os.replace(name, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise
            self._written = True

    def forget(self, python: Path, target: Target, job: Job) -> None:
        """Drop the outcome of a job, which another run did not have."""
        path = self._path(python, target, job)
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        """Keep the folder small."""
        if not self._written:
            return
        room = MOST_BYTES
        for _, size, path in sorted(_entries(self._folder), reverse=True):
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
        key = [known.digest, asdict(target), lasting, search, text]
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        return self._folder / name[:2] / name[2:]

    def _digest(self, job: Job, name: str) -> str:
        """The digest of a path, relative to the job's project or absolute; empty if it is gone.

        That of a folder is of the names in it.
        """
        path = os.path.join(job["root"], name)
        try:
            status = os.stat(path)
            stamp = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
            if stamp not in self._digests:
                self._digests[stamp] = _digest(path, status)
            return self._digests[stamp]
        except (OSError, ValueError):
            return ""

    def _mark(self) -> None:
        """Tell backup programs to leave the folder out (bford.info/cachedir)."""
        tag = self._folder / "CACHEDIR.TAG"
        if not tag.exists():
            tag.write_text("Signature: 8a477f597d28d172789f06886806bc55\n", encoding="ascii")


def _repeatable(outcome: Outcome) -> bool:
    """True if another run would have the same outcome: nothing in it is of the moment."""
    return outcome.repeatable and not any(
        stage.error in ("MemoryError", "TimeoutError", "BlockingIOError")
        or _OF_THE_MOMENT.search(stage.message)
        for stage in outcome.stages
    )


def _inside(job: Job, path: str) -> str:
    """A path into the copy that the view of the job links to, as one relative to the project."""
    base = os.path.join(os.path.dirname(job["root"]), "base", "")  # as `Shadow` has it
    return path.removeprefix(base)


def _digest(path: str, status: os.stat_result) -> str:
    if stat.S_ISDIR(status.st_mode):
        return hashlib.sha256("\0".join(sorted(os.listdir(path))).encode()).hexdigest()
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGE:
        return f"{status.st_size} {status.st_mtime_ns}"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum(path: Path, body: str) -> str:
    return hashlib.sha256(f"{path.name}\n{body}".encode()).hexdigest()


def _entries(folder: Path) -> Iterator[tuple[float, int, str]]:
    """Yield when each entry was last used, its size, and its path."""
    for shard in _listed(folder):
        for entry in _listed(shard):
            # Another run may have removed it since.
            with suppress(OSError):
                if _ENTRY.fullmatch(entry.name):
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_mtime, status.st_size, entry.path


def _listed(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing in what is none, or is gone."""
    try:
        if isinstance(folder, os.DirEntry) and not folder.is_dir(follow_symlinks=False):
            return []
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


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
            "files": frozenset(),
            "tools": tuple(told["tools"]),
        }
    )
