"""A finder of modules that stands before all others, and does two things besides what they do.

It calls hooks after the execution of some modules, and leads imports of the user's project (by an
editable install) to the copy of it in which the command runs.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Finder(MetaPathFinder):
    """`origin` is the project and `root` its copy; `broken` is told why a hook has failed."""

    def __init__(self, origin: str, root: str, broken: Callable[[str], None]) -> None:
        self.after: dict[str, Callable[[ModuleType], None]] = {}
        self._origin = origin + os.sep
        self._root = root + os.sep
        self._broken = broken

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find; None for most submodules, which are left to them."""
        if path is not None and name not in self.after:
            return None
        spec = self._found(name, path, target)
        if spec is not None and spec.origin is not None:
            spec = self._in_copy(spec, spec.origin)
        if spec is not None and name in self.after:
            self._hook(spec.loader, self.after[name])
        return spec

    def _found(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                return spec
        return None

    def _in_copy(self, spec: ModuleSpec, file: str) -> ModuleSpec | None:
        if not file.startswith(self._origin) or file.startswith(self._root):
            return spec
        copy = self._root + file[len(self._origin) :]
        if not os.path.isfile(copy):
            return spec
        package = spec.submodule_search_locations is not None
        return importlib.util.spec_from_file_location(
            spec.name,
            copy,
            submodule_search_locations=[os.path.dirname(copy)] if package else None,
        )

    def _hook(self, loader: Any, action: Callable[[ModuleType], None]) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            try:
                action(module)
            except Exception as error:  # the user's command goes on without
                self._broken(f"{type(error).__name__}: {error}")

        loader.exec_module = exec_module
