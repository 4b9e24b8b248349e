"""`pyproject.toml` as it is written: which keys there are, and what kind of value each takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pallas_fix.git import work_tree


class ConfigError(Exception):
    """Settings that cannot be followed; the text names the place and says what to do."""


@dataclass(frozen=True)
class Project:
    """The project around some files.

    `root` is the folder of the nearest `pyproject.toml` with a `[tool.pallas-fix]`, else of the
    nearest one, else the top of the git work tree, else the folder above the packages.
    `file` is the `pyproject.toml` with the settings, if there is one. `requires_jax` is what
    `[project]` asks of jax, as a specifier (`>=0.9`), and empty where it does not.
    """

    root: Path
    file: Path | None = None
    requires_jax: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    jax: str = ""
    python: str = ""
    loads: str = ""
    cases: tuple[tuple[str, str], ...] = ()
    """The text of each case, and the file that holds its entry, relative to `root`."""
    case_files: tuple[str, ...] = ()


KEYS = (
    "select",
    "ignore",
    "per-file-ignores",
    "exclude",
    "targets",
    "jax",
    "python",
    "loads",
    "case",
    "case-files",
)
"""The keys of `[tool.pallas-fix]`."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word that is nearest to `word`, or nothing."""
    from difflib import get_close_matches

    match = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {match[0]!r}?" if match else ""


def find_project(folder: Path) -> Project:
    """The project around the resolved `folder`. Raises ConfigError."""
    plain: Project | None = None
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if os.path.isfile(file):
            document = read_toml(file)
            tool = document.get("tool")
            table = tool.get("pallas-fix") if isinstance(tool, dict) else None
            requires = _requires(document)
            if isinstance(table, dict):
                return _Table(file, table).project(
                    requires or (plain.requires_jax if plain else "")
                )
            if table is not None:
                raise ConfigError(f"{file}: tool.pallas-fix must be a table: [tool.pallas-fix]")
            plain = plain or Project(parent, requires_jax=requires)
    return plain or Project(_top(folder))


def _top(folder: Path) -> Path:
    tree = work_tree(str(folder))
    if tree is not None:
        return Path(tree)
    while os.path.exists(folder / "__init__.py") and folder != folder.parent:
        folder = folder.parent
    return folder


def read_toml(file: Path) -> dict[str, Any]:
    """What a TOML file says. Raises ConfigError."""
    import tomllib

    try:
        return tomllib.loads(file.read_bytes().decode())
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: is nested too deeply") from None


def _requires(document: Mapping[str, Any]) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    project = document.get("project")
    listed = project.get("dependencies") if isinstance(project, dict) else None
    for text in listed if isinstance(listed, list) else ():
        try:
            requirement = Requirement(str(text))
        except InvalidRequirement:
            continue
        if requirement.name.lower() == "jax":
            return str(requirement.specifier) or ">=0"
    return ""


@dataclass(frozen=True)
class _Table:
    file: Path
    table: Mapping[str, Any]

    def project(self, requires_jax: str) -> Project:
        for key in self.table:
            if key not in KEYS:
                raise self._error(f"unknown key {key!r}{nearest(key, KEYS)}")
        return Project(
            self.file.parent,
            self.file,
            requires_jax,
            select=self._texts("select"),
            ignore=self._texts("ignore"),
            per_file_ignores=self._per_file_ignores(),
            exclude=self._texts("exclude"),
            targets=self._texts("targets"),
            jax=self._text("jax"),
            python=self._text("python"),
            loads=self._loads(),
            cases=self._cases(),
            case_files=self._texts("case-files"),
        )

    def _loads(self) -> str:
        loads = self._text("loads")
        if loads not in ("", "stored", "all"):
            raise self._error(f"loads must be 'stored' or 'all', not {loads!r}")
        return loads

    def _per_file_ignores(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        table = self.table.get("per-file-ignores", {})
        if not isinstance(table, dict):
            raise self._error("per-file-ignores must be a table: { 'tests/*' = ['TPU'] }")
        return tuple(
            (pattern, self._strings(codes, f"per-file-ignores.{pattern!r}"))
            for pattern, codes in table.items()
        )

    def _cases(self) -> tuple[tuple[str, str], ...]:
        tables = self.table.get("case", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self._error("each case is a table: [[tool.pallas-fix.case]]")
        cases = []
        for number, table in enumerate(tables, start=1):
            for key in table:
                if key not in ("case", "path"):
                    hint = nearest(key, ("case", "path"))
                    raise self._error(f"case {number}: unknown key {key!r}{hint}")
            text, path = table.get("case"), table.get("path", "")
            if not isinstance(text, str) or not isinstance(path, str):
                raise self._error(
                    f"case {number}: write case = 'matmul(bf16[64,256], bf16[256,256])'"
                )
            cases.append((text, path))
        return tuple(cases)

    def _text(self, key: str) -> str:
        value = self.table.get(key, "")
        if not isinstance(value, str):
            raise self._error(f"{key} must be a string")
        return value

    def _texts(self, key: str) -> tuple[str, ...]:
        return self._strings(self.table.get(key, []), key)

    def _strings(self, value: object, key: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(f"{key} must be a list of strings")
        return tuple(value)

    def _error(self, message: str) -> ConfigError:
        return ConfigError(f"{self.file}: [tool.pallas-fix]: {message}")
