"""The settings of each file: those of the nearest project, with the command line over them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pallas_fix.config import Config, Options, configured, folder_of
from pallas_fix.discover import Exclude, Excluding
from pallas_fix.pyproject import ConfigError, Project, find_project


@dataclass
class Projects:
    """The projects of one run over `paths`; `codes` are those of all rules.

    `main` is the configuration for the folder that holds all the paths. Raises ConfigError where
    the settings there, or the command line, cannot be followed.
    """

    paths: Sequence[Path]
    options: Options
    codes: Iterable[str]
    main: Config = field(init=False)
    _anchors: dict[Path, Path] = field(default_factory=dict)
    _projects: dict[Path, Project | ConfigError] = field(default_factory=dict)
    _excludes: dict[str, tuple[Exclude, ...]] = field(default_factory=dict)
    _configs: dict[Project, Config | ConfigError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.codes = tuple(self.codes)
        folders = [folder_of(path) for path in self.paths or [Path()]]
        self.main = self._of_folder(Path(os.path.commonpath(folders)))

    def of(self, path: Path) -> Config:
        """The configuration for the file, or folder, at `path`. Raises ConfigError."""
        return self._of_folder(folder_of(path))

    @property
    def excludes(self) -> tuple[Excluding, ...]:
        """What leaves out files: the settings around all the paths, and the nearest ones."""
        return (*self.main.excludes, self)

    def __contains__(self, path: str) -> bool:
        """True if the nearest project of the absolute `path` excludes it.

        A folder's path ends with a slash. Settings that cannot be followed exclude nothing.
        """
        folder = os.path.dirname(path.rstrip(os.sep))
        if folder not in self._excludes:
            try:
                config = self._of_folder(Path(os.path.realpath(folder)))
            except ConfigError:
                config = self.main
            self._excludes[folder] = () if config is self.main else config.excludes
        return any(path in exclude for exclude in self._excludes[folder])

    def _of_folder(self, folder: Path) -> Config:
        anchor = self._anchor(folder)
        if anchor not in self._projects:
            try:
                self._projects[anchor] = find_project(anchor)
            except ConfigError as error:
                self._projects[anchor] = error
        project = self._projects[anchor]
        if isinstance(project, ConfigError):
            raise project
        if project not in self._configs:
            try:
                self._configs[project] = configured(project, self.options, tuple(self.codes))
            except ConfigError as error:
                self._configs[project] = error
        config = self._configs[project]
        if isinstance(config, ConfigError):
            raise config
        return config

    def _anchor(self, folder: Path) -> Path:
        """The nearest folder with a `pyproject.toml`, for which all is known; else `folder`."""
        if folder not in self._anchors:
            above = (folder, *folder.parents)
            found = (at for at in above if os.path.isfile(at / "pyproject.toml"))
            self._anchors[folder] = next(found, folder)
        return self._anchors[folder]
