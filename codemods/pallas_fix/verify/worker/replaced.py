"""Puts stand-ins in the place of jax's functions, before the user's code imports those."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def replace(module: ModuleType, name: str, stand_in: Callable[..., Any]) -> None:
    """Put a stand-in wherever jax's loaded modules name that function of a public module."""
    original = getattr(module, name)
    for path, loaded in list(sys.modules.items()):
        if path == "jax" or path.startswith("jax."):
            for attribute, value in list(vars(loaded).items()):
                if value is original:
                    setattr(loaded, attribute, stand_in)
    setattr(module, name, stand_in)
