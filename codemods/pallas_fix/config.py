"""What a run was asked to do: the settings of the project, and the command line over them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_fix.discover import Exclude
from pallas_fix.pyproject import ConfigError, Project, find_project, nearest

if TYPE_CHECKING:
    from pallas_fix.verify.cases import Case
    from pallas_fix.verify.recorded import Recorded

CASE_FILE = "pallas-fix-cases.toml"
"""The file of recorded cases that is read without being named, at the root of a project."""


@dataclass(frozen=True)
class Options:
    """What the command line says; empty where it says nothing."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    jax: str = ""
    python: Path | None = None
    before_python: Path | None = None
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Config:
    """The settings of one run, checked.

    `root` is the folder of the project and `file` the `pyproject.toml` with its settings, if
    any. `before_python` is the interpreter for the files before a fix, where it is another one.
    Empty `select` means every rule. `jax` is empty where nobody said what the code must run on.
    A path in `cases` is relative to `root`; a case without one is for the file that defines its
    entry. `recorded` has the cases of each file of recorded ones. `origins` says who set what
    (`select`, `targets`, `jax`, `python`, `loads`), where somebody did.
    """

    root: Path
    python: Path
    before_python: Path | None = None
    file: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[Exclude, tuple[str, ...]], ...] = ()
    excludes: tuple[Exclude, ...] = ()
    targets: tuple[str, ...] = ()
    jax: str = ""
    requires_jax: str = ""
    loads: str = "stored"
    cases: tuple[Case, ...] = field(default=())
    recorded: tuple[tuple[Path, tuple[Recorded, ...]], ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    def selects(self, code: str) -> bool:
        """True if the rule `code` is to run."""
        return code.startswith(self.select or "") and not (
            self.ignore and code.startswith(self.ignore)
        )

    def ignores(self, path: Path, code: str) -> bool:
        """True if the settings keep the rule `code` away from the file at `path`."""
        absolute = os.path.abspath(path)
        return any(
            code.startswith(codes) and absolute in files for files, codes in self.per_file_ignores
        )


def load(paths: Sequence[Path], options: Options, codes: Iterable[str]) -> Config:
    """The settings of the project around all of `paths`; `codes` are those of all rules.

    Raises ConfigError.
    """
    folders = [folder_of(path) for path in paths or [Path()]]
    return configured(find_project(Path(os.path.commonpath(folders))), options, tuple(codes))


def configured(project: Project, options: Options, known: tuple[str, ...]) -> Config:
    """The settings of a project, with the command line over them; `known` are the codes of rules.

    `--select`, `--target`, `--jax` and `--python` replace what the project says; `--ignore`,
    `--exclude` and `--case` add to it. Raises ConfigError.
    """
    config = _checked(project, known)
    here = Path(os.path.abspath(os.curdir))
    excludes = Exclude(here, _patterns(options.exclude, "--exclude"))
    return replace(
        config,
        select=_codes(options.select, known, "--select") or config.select,
        ignore=config.ignore + _codes(options.ignore, known, "--ignore"),
        excludes=(*config.excludes, excludes),
        targets=_targets(options.targets, "--target") or config.targets,
        jax=_jax(options.jax, "--jax") or config.jax,
        python=_python(options.python, "--python") if options.python else config.python,
        before_python=_python(options.before_python, "--before-python")
        if options.before_python
        else None,
        cases=(
            *config.cases,
            *(_case(text, "", "--case", here, config.root) for text in options.cases),
        ),
        origins=_origins(project, options),
    )


def folder_of(path: Path) -> Path:
    """The resolved folder that `path` is, or lies in."""
    resolved = Path(os.path.realpath(path))
    return resolved if os.path.isdir(resolved) else resolved.parent


def _origins(project: Project, options: Options) -> dict[str, str]:
    said = {
        "select": ("--select", options.select, project.select),
        "targets": ("--target", options.targets, project.targets),
        "jax": ("--jax", options.jax, project.jax),
        "python": ("--python", options.python, project.python),
        "loads": ("", "", project.loads),
    }
    return {
        key: option if given else f"tool.pallas-fix.{key}"
        for key, (option, given, written) in said.items()
        if given or written
    }


def default_python() -> Path:
    """The interpreter of the active virtual environment, else the one that runs pallas-fix."""
    active = os.environ.get("VIRTUAL_ENV")
    if active:
        parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
        python = Path(active, *parts)
        if os.path.exists(python):
            return python
    return Path(sys.executable)


def _checked(project: Project, known: tuple[str, ...]) -> Config:
    def place(key: str) -> str:
        return f"{project.file}: tool.pallas-fix.{key}"

    root = project.root
    python = _python(root / project.python, place("python")) if project.python else None
    return Config(
        root=root,
        python=python or default_python(),
        file=project.file,
        select=_codes(project.select, known, place("select")),
        ignore=_codes(project.ignore, known, place("ignore")),
        per_file_ignores=tuple(
            (
                Exclude(root, _patterns((pattern,), place("per-file-ignores"))),
                _codes(codes, known, place("per-file-ignores")),
            )
            for pattern, codes in project.per_file_ignores
        ),
        excludes=(Exclude(root, _patterns(project.exclude, place("exclude"))),),
        targets=_targets(project.targets, place("targets")),
        jax=_jax(project.jax, place("jax")),
        requires_jax=project.requires_jax,
        loads=project.loads or "stored",
        cases=tuple(_case(text, path, place("case"), root, root) for text, path in project.cases),
        recorded=tuple(_case_files(project, place("case-files"))),
    )


def _case_files(project: Project, place: str) -> Iterator[tuple[Path, tuple[Recorded, ...]]]:
    """Yield each file of recorded cases, the one at the root and those named, with its cases."""
    default = project.root / CASE_FILE
    named = [project.root / name for name in project.case_files]
    files = [default, *named] if os.path.isfile(default) else named
    if not files:
        return
    from pallas_fix.verify.casefile import read_cases

    for file in dict.fromkeys(files):
        if not os.path.isfile(file):
            raise ConfigError(f"{place}: there is no file {file}")
        cases = read_cases(file)
        for one in cases:
            if one.case.path and not os.path.isfile(project.root / one.case.path):
                raise ConfigError(
                    f"{file}: case '{one.case}': there is no file {one.case.path}; record again"
                )
        yield file, cases


def _codes(words: Iterable[str], known: tuple[str, ...], place: str) -> tuple[str, ...]:
    """The codes and prefixes in `words`, which may be separated by commas."""
    codes = tuple(code for word in words for code in word.replace(",", " ").split())
    for code in codes:
        if not any(rule.startswith(code) for rule in known):
            raise ConfigError(f"{place}: no rule is called {code!r}{nearest(code, known)}")
    return codes


def _patterns(patterns: tuple[str, ...], place: str) -> tuple[str, ...]:
    if patterns:
        from pathspec import GitIgnoreSpec

        try:
            GitIgnoreSpec.from_lines(patterns)
        except ValueError as error:
            raise ConfigError(f"{place}: {error} (patterns are those of .gitignore)") from None
    return patterns


def _targets(words: Iterable[str], place: str) -> tuple[str, ...]:
    names = [name for word in words for name in word.replace(",", " ").split()]
    if not names:
        return ()
    from pallas_fix.targets import TARGETS, find_target

    try:
        return tuple(dict.fromkeys(find_target(name).name for name in names))
    except ValueError as error:
        hint = "".join(nearest(name, TARGETS) for name in names if name.lower() not in TARGETS)
        raise ConfigError(f"{place}: {error}{hint}") from None


def _jax(text: str, place: str) -> str:
    if text:
        from pallas_fix.versions import parse_jax

        try:
            parse_jax(text)
        except ValueError as error:
            raise ConfigError(f"{place}: {error}") from None
    return text


def _python(path: Path, place: str) -> Path:
    if os.path.isdir(path):
        raise ConfigError(f"{place}: {path} is a folder; name its interpreter, {path}/bin/python")
    if not os.access(path, os.X_OK):
        raise ConfigError(f"{place}: {path} is not an executable file")
    return Path(os.path.abspath(path))


def _case(text: str, path: str, place: str, base: Path, root: Path) -> Case:
    """The case in `text`, its path (relative to `base`) made relative to `root`."""
    from pallas_fix.verify.cases import CaseError, parse_case

    try:
        case = parse_case(text)
    except CaseError as error:
        raise ConfigError(f"{place}: {error}") from None
    named = case.path or path
    if not named:
        return case
    file = os.path.join(base, named)
    if not os.path.isfile(file):
        raise ConfigError(f"{place}: case {text!r}: there is no file {file}")
    return replace(case, path=os.path.relpath(os.path.realpath(file), root))
