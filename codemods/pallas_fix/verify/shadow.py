"""The copy of the user's project in which a file can be another version of itself."""

from __future__ import annotations

import ast
import io
import os
import shutil
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SKIPPED = frozenset(
    """
    .git .hg .svn .jj .venv venv .tox .nox .eggs __pycache__ node_modules site-packages
    .mypy_cache .ruff_cache .pytest_cache .hypothesis .ipynb_checkpoints
    """.split()
)
_COPIED = frozenset(".py .pyi .toml .json .yaml .yml .cfg .ini .txt .csv .npy".split())
_LINKED = frozenset((".so", ".pyd"))

MOST_FILES = 20_000
MOST_BYTES = 256 << 20
LARGEST_FILE = 4 << 20
MOST_ENTRIES = 200_000


class Shadow:
    """A copy of the small files of one project; big data and environments stay out."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root.resolve()
        self.base = folder / "base"
        self._folder = folder
        self._views = 0
        self._bytes = 0
        self._known: dict[str, tuple[int, int]] = {}
        self.full = False
        """True if the project has more files than are copied."""

    def refresh(self, first: Path) -> None:
        """Copy what is new or has changed; the folder of the file `first` (relative) before all."""
        top = first.parts[0] if len(first.parts) > 1 else "."
        for source in _files(self.root, self.root / top):
            if len(self._known) >= MOST_FILES or self._bytes >= MOST_BYTES:
                self.full = True
                return
            self._copy(source)

    def _copy(self, source: os.DirEntry[str]) -> None:
        relative = os.path.relpath(source.path, self.root)
        try:
            status = source.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if self._known.get(relative) == stamp or status.st_size > LARGEST_FILE:
                return
            copy = self.base / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            if os.path.splitext(source.name)[1] in _LINKED:
                copy.symlink_to(os.path.realpath(source.path))
            else:
                shutil.copyfile(source.path, copy)
        except OSError:
            return  # it vanished or cannot be read: importing it will say so
        self._known[relative] = stamp
        self._bytes += status.st_size

    def view(self, path: Path, text: str) -> Path:
        """A folder that looks like the copy with `text` in the place of the file `path`.

        Only the folders on the way to the file are real; all else links to the copy.
        """
        self._views += 1
        view = self._folder / f"view{self._views}"
        source, made = self.base, view
        for part in path.parts:
            made.mkdir(parents=True)
            if source.is_dir():
                for entry in os.scandir(source):
                    if entry.name != part:
                        (made / entry.name).symlink_to(entry.path)
            source, made = source / part, made / part
        text = text.removeprefix("\ufeff")
        made.write_bytes(text.encode(_encoding(text)))
        return view


def _encoding(text: str) -> str:
    """The encoding that the text declares for itself; UTF-8 where it does not."""
    first = "".join(text.splitlines(keepends=True)[:2]).encode("utf-8", "replace")
    try:
        return tokenize.detect_encoding(io.BytesIO(first).readline)[0]
    except SyntaxError:
        return "utf-8"


def _files(root: Path, first: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files to copy, those below `first` first."""
    entries = 0
    todo = [str(root), str(first)] if first != root else [str(root)]
    seen: set[str] = set()
    while todo:
        folder = todo.pop()
        if folder in seen:
            continue
        seen.add(folder)
        try:
            found = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in found):
            continue
        folders = []
        for entry in found:
            entries += 1
            if entries > MOST_ENTRIES:
                return
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        folders.append(entry.path)
                elif os.path.splitext(entry.name)[1] in _COPIED | _LINKED and entry.is_file():
                    yield entry
            except OSError:
                continue
        todo.extend(reversed(folders))


@dataclass(frozen=True, slots=True)
class Place:
    """How a project imports one of its files: the module's name, and folders for `sys.path`.

    The folders are relative to the project's root.
    """

    module: str
    search: tuple[str, ...]


def place(root: Path, path: Path, text: str) -> Place:
    """Where the file `path` (relative to `root`), whose text is given, belongs.

    A file in packages (`__init__.py`) gets its full name, from the first folder above that is no
    package. One that imports relatively without such files gets its path from `src` or the root.
    """
    parents = list(path.parents)[:-1]
    package = []
    for folder in parents:
        if not (root / folder / "__init__.py").is_file():
            break
        package.append(folder.name)
    names = list(reversed(package))
    start = path.parents[len(package)]
    if not names and _imports_relatively(text):
        start = Path("src") if path.parts[0] == "src" else Path()
        names = list(path.parent.relative_to(start).parts)
    if path.stem != "__init__" or not names:
        names.append(path.stem)
    search = [start, *_pytest_folders(root, path), Path(), Path("src")]
    unique = dict.fromkeys(str(folder) for folder in search if (root / folder).is_dir())
    return Place(".".join(names), tuple(unique))


def _imports_relatively(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))


def _pytest_folders(root: Path, path: Path) -> Iterator[Path]:
    """Yield the folders that pytest would put on the path: of conftest files, of its settings."""
    for folder in path.parents:
        if (root / folder / "conftest.py").is_file():
            yield folder
    try:
        settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        names = settings["tool"]["pytest"]["ini_options"]["pythonpath"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in names if isinstance(names, list) else [names]:
        if isinstance(name, str) and not os.path.isabs(name) and ".." not in name:
            yield Path(name)
