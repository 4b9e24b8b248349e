"""The rules. A rule registers itself by living in a module of this package."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from pallas_fix.rules.base import Finding, Options, Reason, Rule

__all__ = ["Finding", "Options", "Reason", "Rule", "all_rules"]


@cache
def all_rules() -> dict[str, type[Rule]]:
    """Every rule by its code, in the order of the codes."""
    found: dict[str, type[Rule]] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        loaded = importlib.import_module(module.name)
        for item in vars(loaded).values():
            own = inspect.isclass(item) and item.__module__ == module.name
            if own and issubclass(item, Rule) and not inspect.isabstract(item):
                if item.code in found:
                    raise RuntimeError(f"{item.code} is defined twice")
                found[item.code] = item
    return dict(sorted(found.items()))
