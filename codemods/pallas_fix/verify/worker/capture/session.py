"""The capture in one process, from the import of Pallas on."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from types import ModuleType

from .begin import MOSAIC_GPU, Capture
from .launches import Launches
from .simulation import Simulation
from .writing import Writer


def begin_session(capture: Capture) -> Callable[[ModuleType], None]:
    """Note launches from now on, and run them where there is no chip for them.

    Returns what is to be done once the functions for GPUs are imported.
    """
    settings = capture.settings
    writer = Writer(settings["dtypes"], settings["keys"])
    capture.functions.write = writer.value
    simulation = Simulation(settings["targets"], settings["root"], capture.journal)
    simulation.install()
    launches = Launches(settings["root"], capture.journal, capture.functions, writer, simulation)
    launches.install()
    if MOSAIC_GPU in sys.modules:
        launches.install_gpu(sys.modules[MOSAIC_GPU])
    capture.simulation = simulation
    atexit.register(simulation.tell)
    return launches.install_gpu
