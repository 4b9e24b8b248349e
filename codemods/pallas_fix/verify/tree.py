"""A whole copy of a project, for commands that read, write and run what they like in it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pallas_fix.discover import NEVER

_LEFT_OUT = NEVER | {".hypothesis", "venv"}

LARGEST_FILE = 32 << 20
MOST_FILES = 20_000
MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds: the Python files in it, relative, and how many files it lacks."""

    python: tuple[Path, ...]
    missing: int


def copy_tree(root: Path, tree: Path, contents: Mapping[Path, bytes]) -> Copied:
    """Copy the project at `root` to the new folder `tree`, other `contents` (relative) over it.

    Environments, caches, repositories, and files over `LARGEST_FILE` stay out. A link inside of
    the project leads to the copy, a link out of it to where it led. Raises OSError where the
    folder cannot be written.
    """
    python, files, total, missing = [], 0, 0, 0
    tree.mkdir(parents=True)
    for entry in _entries(root):
        place = tree / os.path.relpath(entry.path, root)
        if entry.is_symlink() and entry.is_dir():
            _link(entry.path, place, root)
            continue
        if entry.is_dir():
            place.mkdir()
            continue
        try:
            size = entry.stat().st_size
            if size > LARGEST_FILE or files >= MOST_FILES or total + size > MOST_BYTES:
                missing += 1
                continue
            shutil.copy(entry.path, place)
        except OSError:
            missing += not os.path.lexists(place.parent) or os.path.isfile(entry.path)
            continue
        files, total = files + 1, total + size
        if entry.name.endswith(".py"):
            python.append(place.relative_to(tree))
    for path, content in contents.items():
        (tree / path).write_bytes(content)
    return Copied(tuple(python), missing)


def _entries(root: Path) -> Iterator[os.DirEntry[str]]:
    """Yield folders and files, each folder before what it holds."""
    todo = [str(root)]
    while todo:
        try:
            found = sorted(os.scandir(todo.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in found:
            try:
                folder = entry.is_dir()
                if folder and _stays_out(entry):
                    continue
                if not folder and not entry.is_file():
                    continue
            except OSError:
                continue
            yield entry
            if folder and not entry.is_symlink():
                todo.append(entry.path)


def _stays_out(folder: os.DirEntry[str]) -> bool:
    """True for environments, caches, and copies like this one."""
    own = os.path.join(os.path.realpath(tempfile.gettempdir()), "pallas-fix-")
    environment = os.path.lexists(os.path.join(folder.path, "pyvenv.cfg"))
    return folder.name in _LEFT_OUT or environment or folder.path.startswith(own)


def _link(path: str, place: Path, root: Path) -> None:
    inside = os.path.relpath(os.path.realpath(path), root)
    if inside.startswith(".."):
        place.symlink_to(os.path.realpath(path))
    else:
        place.symlink_to(os.path.relpath(os.path.join(root, inside), os.path.dirname(path)))
