"""The beginning of a capture, in a process that has just started."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from ..load import redirect
from .finder import Finder
from .functions import Functions
from .journal import Journal

if TYPE_CHECKING:
    from .simulation import Simulation

PALLAS = "jax.experimental.pallas"
MOSAIC_GPU = "jax.experimental.pallas.mosaic_gpu"


@dataclass
class Capture:
    """The capture in this process. There is a `simulation` from the import of Pallas on."""

    settings: dict[str, Any]
    journal: Journal
    functions: Functions
    simulation: Simulation | None = None
    current: ClassVar[Capture | None] = None


def begin(path: str) -> None:
    """Follow the settings in the file `path`, which `verify/command.py` writes."""
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    root = settings["root"]
    redirect(settings["origin"], root)
    journal = Journal(settings["journal"])
    functions = Functions(root, lambda file, name: journal.tell("entered", file=file, name=name))
    capture = Capture.current = Capture(settings, journal, functions)
    functions.start()

    def after_pallas(module: ModuleType) -> None:
        from .session import begin_session

        finder.after[MOSAIC_GPU] = begin_session(capture)

    def broken(what: str) -> None:
        journal.tell("note", message=f"launches are not captured: {what}")

    finder = Finder(settings["origin"], root, broken)
    finder.after[PALLAS] = after_pallas
    finder.after["_pytest.config"] = _load_plugin
    sys.meta_path.insert(0, finder)


def _load_plugin(module: ModuleType) -> None:
    """Done when pytest is imported: others that read the variable may not know the plugin."""
    given = os.environ.get("PYTEST_ADDOPTS", "")
    os.environ["PYTEST_ADDOPTS"] = f"{given} {PLUGIN}".strip()


PLUGIN = f"-p {__package__}.tests"
"""The option that makes pytest load the plugin."""
