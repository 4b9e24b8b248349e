"""Which files a run looks at.

Inside a git work tree: what git tracks or does not ignore. Elsewhere: a walk that does not
follow links to folders. A submodule or a nested repository is a work tree of its own, and is
looked at when it is named.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pallas_fix import git
from pallas_fix.files import SourceError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIXES = (".py", ".pyi")

NEVER = frozenset(
    {
        ".bzr",
        ".direnv",
        ".eggs",
        ".git",
        ".hg",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".nox",
        ".pants.d",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        "__pycache__",
        "__pypackages__",
        "node_modules",
        "site-packages",
    }
)
"""Folders that are never entered, unless a path inside one is named by hand."""

_UNREADABLE = re.compile(r"^warning: could not open directory '(.*?)/?': (.*)$", re.MULTILINE)


class Excluding(Protocol):
    """What leaves out absolute paths; a folder's path ends with a slash."""

    def __contains__(self, path: str, /) -> bool: ...


@dataclass(frozen=True)
class Exclude:
    """Patterns in the syntax of `.gitignore`, relative to `root`."""

    root: Path
    patterns: tuple[str, ...]

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        from pathspec import GitIgnoreSpec

        return GitIgnoreSpec.from_lines(self.patterns)

    def __contains__(self, path: str) -> bool:
        """True if the absolute `path` is excluded; a folder's path ends with a slash."""
        if not self.patterns:
            return False
        root = os.path.abspath(self.root)
        inside = path.startswith(os.path.join(root, ""))
        name = path[len(os.path.join(root, "")) :] if inside else path.lstrip(os.sep)
        return self._spec.match_file(name.replace(os.sep, "/"))


def discover(
    paths: Sequence[Path], excludes: Sequence[Excluding] = (), *, named_too: bool = False
) -> Iterator[Path | SourceError]:
    """The files of `paths`, in a stable order and each one once.

    A file named by hand is among them also if it is excluded, but with `named_too`. What cannot be
    looked at comes as a SourceError in the place of a path, and the rest follows.
    """
    found: dict[str, Path | SourceError] = {}
    named: list[Path | SourceError] = []
    folders: list[Path] = []
    for path in paths:
        try:
            (folders if stat.S_ISDIR(os.stat(path).st_mode) else named).append(path)
        except (OSError, ValueError) as error:
            named.append(SourceError(path, None, _why(error)))
    search = _Search(excludes)
    if named_too:
        named = [
            item
            for item in named
            if isinstance(item, SourceError) or not search.excluded(str(item))
        ]
    for item in [*named, *sorted(search.files(folders), key=_order)]:
        real = str(item) if isinstance(item, SourceError) else os.path.realpath(item)
        known = found.get(real)
        if known is None or (_is_link(known) and not _is_link(item)):
            found[real] = item
    yield from sorted(found.values(), key=_order)


def _order(item: Path | SourceError) -> tuple[str, ...]:
    return (item.path if isinstance(item, SourceError) else item).parts


def _is_link(item: Path | SourceError) -> bool:
    return isinstance(item, Path) and os.path.islink(item)


@dataclass(frozen=True)
class _Search:
    """One search: what it leaves out, and what it has learnt about folders."""

    excludes: Sequence[Excluding]
    _known: dict[str, bool] = field(default_factory=dict)

    def files(self, folders: Sequence[Path]) -> Iterator[Path | SourceError]:
        trees: dict[str, list[Path]] = {}
        for folder in folders:
            tree = git.work_tree(os.path.realpath(folder))
            if tree is None:
                yield from self._walk(folder)
            else:
                trees.setdefault(tree, []).append(folder)
        for tree, inside in trees.items():
            yield from self._list_tree(tree, inside)

    def _list_tree(self, tree: str, folders: Sequence[Path]) -> Iterator[Path | SourceError]:
        """What git lists below `folders`, all of which lie in the work tree `tree`."""
        places = [(os.path.relpath(os.path.realpath(folder), tree), folder) for folder in folders]
        wanted = [place for place, _ in places]
        listing = git.ask(
            tree,
            "--literal-pathspecs",
            "ls-files",
            "-co",
            "--exclude-standard",
            "-z",
            "--",
            *wanted,
        )
        if listing is None or not listing.ok:
            if listing is not None:
                why = listing.warnings.strip().splitlines() or ["no reason given"]
                message = f"git cannot list it ({why[0]}): what git ignores is looked at too"
                yield SourceError(Path(tree), None, message)
            for folder in folders:
                yield from self._walk(folder)
            return
        for name, why_not in _UNREADABLE.findall(listing.warnings):
            yield SourceError(_shown(name, places), None, f"folder cannot be read: {why_not}")
        entries = [entry for entry in listing.text.split("\0") if entry]
        for place, folder in places:
            prefix = "" if place == "." else f"{place}/"
            inside = [entry for entry in entries if entry.startswith(prefix)]
            if not inside and prefix:
                ignored = git.ask(tree, "check-ignore", "-q", "--", place)
                if ignored is not None and ignored.ok:
                    yield from self._walk(folder)
            for entry in inside:
                path = folder / entry[len(prefix) :]
                if entry.endswith(SUFFIXES) and not self._left_out(folder, path):
                    yield from _present(path)

    def _walk(self, folder: Path) -> Iterator[Path | SourceError]:
        """The files below `folder`, without git; work trees met on the way are listed by git."""
        pending = [folder]
        while pending:
            current = pending.pop()
            try:
                with os.scandir(current) as scanned:
                    entries = list(scanned)
            except OSError as error:
                yield SourceError(current, None, f"folder cannot be read: {_why(error)}")
                continue
            if current is not folder and any(entry.name == ".git" for entry in entries):
                yield from self._list_tree(os.path.realpath(current), [current])
                continue
            for entry in entries:
                path = current / entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not self._never(str(path)) and not self.excluded(f"{path}{os.sep}"):
                        pending.append(path)
                elif entry.name.endswith(SUFFIXES) and not self.excluded(str(path)):
                    yield from _present(path)

    def _left_out(self, folder: Path, path: Path) -> bool:
        depth = len(path.parts) - len(folder.parts) - 1
        above = path.parents[:depth]
        return any(self._never(str(parent)) for parent in above) or self.excluded(str(path))

    def _never(self, folder: str) -> bool:
        known = self._known.get(folder)
        if known is None:
            known = os.path.basename(folder) in NEVER or os.path.lexists(
                os.path.join(folder, "pyvenv.cfg")
            )
            self._known[folder] = known
        return known

    def excluded(self, path: str) -> bool:
        if not self.excludes:
            return False
        absolute = os.path.abspath(path) + (os.sep if path.endswith(os.sep) else "")
        return any(absolute in exclude for exclude in self.excludes)


def _shown(name: str, places: Sequence[tuple[str, Path]]) -> Path:
    for place, folder in places:
        if place == ".":
            return folder / name
        if name == place or name.startswith(f"{place}/"):
            return folder / name[len(place) + 1 :]
    return Path(name)


def _present(path: Path) -> Iterator[Path | SourceError]:
    """`path`, unless it is a folder, is gone, or is a link into somebody's packages."""
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            return
    except FileNotFoundError:
        if os.path.lexists(path):
            yield SourceError(path, None, "is a symbolic link to nothing")
        return
    except OSError as error:
        yield SourceError(path, None, _why(error))
        return
    if os.path.islink(path):
        beyond = {*Path(os.path.realpath(path)).parts} - {*Path(os.path.abspath(path)).parts}
        if NEVER & beyond:
            return
    yield path


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file or folder"
    return getattr(error, "strerror", None) or str(error)
