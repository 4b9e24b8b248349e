"""Imports the user's file from the shadow copy, under the name that its own project gives it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

MODULE = "<module>"


def load(task: dict[str, Any]) -> ModuleType:
    """Import `task["file"]` of the shadow copy at `task["root"]`; its parent packages first.

    Raises whatever the user's code raises.
    """
    root, name = task["root"], task["module"]
    path = os.path.join(root, task["entry_file"])
    redirect(task["origin"], root)
    sys.path[:0] = task["search"]
    os.chdir(root)
    parent = name.rpartition(".")[0]
    if parent:
        importlib.import_module(parent)
        known = sys.modules.get(name)
        if known is not None and getattr(known, "__file__", None) == path:
            return known
    elif name in sys.modules or name in sys.stdlib_module_names or not name.isidentifier():
        name = "_pallas_fix_case"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find(module: ModuleType, qualname: str) -> Any:
    """The object of that qualified name in the module. Raises AttributeError in plain words."""
    value: Any = module
    for part in qualname.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise AttributeError(f"the file has no {qualname!r}") from None
    return value


def redirect(origin: str, root: str) -> None:
    """Turn search paths into the user's project (editable installs) towards the shadow copy."""
    for index, entry in enumerate(sys.path):
        inside = os.path.relpath(os.path.realpath(entry or "."), origin)
        shadow = os.path.normpath(os.path.join(root, inside))
        if not inside.startswith("..") and os.path.isdir(shadow):
            sys.path[index] = shadow
