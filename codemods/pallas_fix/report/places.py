"""The names by which other programs know a file."""

from __future__ import annotations

import os
from pathlib import Path

from pallas_fix.git import work_tree


def in_tree(path: Path) -> str:
    """The path of a file from the top of the git work tree of the current folder, with slashes.

    Links are resolved, as git knows a file by one name. Without a work tree it is the path from
    the current folder; for a file that is not below, the absolute path.
    """
    here = os.path.realpath(os.curdir)
    return _below(path, work_tree(here) or here) or _absolute(path)


def from_here(path: Path) -> str:
    """The path of a file from the current folder, with slashes.

    Absolute where the file is in no work tree with the current folder.
    """
    here = os.path.realpath(os.curdir)
    if _below(path, work_tree(here) or here) is None:
        return _absolute(path)
    return os.path.relpath(os.path.realpath(path), here).replace(os.sep, "/")


def _below(path: Path, folder: str) -> str | None:
    real = os.path.realpath(path)
    if not real.startswith(os.path.join(folder, "")):
        return None
    return os.path.relpath(real, folder).replace(os.sep, "/")


def _absolute(path: Path) -> str:
    return os.path.realpath(path).replace(os.sep, "/")
