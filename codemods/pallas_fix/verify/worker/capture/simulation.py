"""Where launches run in a process without the chip: the simulators of the run stage."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
from jax.experimental import pallas as pl

from .. import chips
from ..chips import Target, Unavailable
from ..internals import gpu_interpreter
from .journal import Journal


class Simulation:
    """Runs launches for `targets`: one TPU, one GPU, or one of each; none where there are devices.

    jax is changed for good.
    """

    def __init__(self, targets: list[Target], root: str, journal: Journal) -> None:
        self._journal = journal
        self._targets = {target["platform"]: target for target in targets}
        self._simulators: dict[str, Any] = {}
        self._functions: dict[str, dict[str, Callable[..., Any]]] = {}
        self._used: set[str] = set()
        self._alone = threading.RLock()
        self._root = root

    def install(self) -> None:
        """Make the functions of jax for both kinds of chips; `function` gives them."""
        if not self._targets:
            return
        first = next(iter(self._targets.values()))
        jax.default_backend = lambda: first["platform"]
        chips.mesh(first).__enter__()  # for good: it is what asks for the chip outside of a launch
        originals = _functions()
        for platform in ("gpu", "tpu"):
            if platform in self._targets:
                try:
                    self._simulators[platform] = self._simulator(platform)
                except (Unavailable, ImportError) as error:
                    self._journal.tell("note", message=str(error))
                self._functions[platform] = _functions()
                _put(originals)
        if "gpu" in self._simulators:
            gpu_interpreter.do_with()

    def function(self, platform: str, name: str) -> Callable[..., Any] | None:
        """The launch of that name for the chips of a platform; None if it is jax's own."""
        return self._functions.get(platform, {}).get(name)

    def platform(self, arguments: dict[str, Any]) -> str:
        """The platform that a launch with these arguments is for."""
        if len(self._targets) < 2:
            return next(iter(self._targets), "")
        told = [arguments.get("mesh"), arguments.get("compiler_params")]
        kinds = " ".join(type(one).__module__ for one in told)
        gpu = "mosaic_gpu" in kinds or "triton" in kinds
        return "gpu" if gpu else "tpu"

    @contextmanager
    def running(self, platform: str) -> Iterator[None]:
        """While a launch for that platform is built and runs; no other thread's does."""
        target = self._targets.get(platform)
        with ExitStack() as stack:
            if target is not None:
                stack.enter_context(self._alone)
                if jax.sharding.get_abstract_mesh().empty:
                    stack.enter_context(chips.mesh(target))
                if platform == "gpu" and "tpu" in self._simulators:
                    from jax.experimental.pallas import tpu

                    # The mode that a TPU needs stands over what a launch for a GPU asks for.
                    stack.enter_context(tpu.force_tpu_interpret_mode(None))
            yield

    def ended(self, platform: str, results: Any) -> None:
        """Wait for the end of a launch, for jax interprets one kernel at a time."""
        if platform in self._simulators:
            leaves = jax.tree.leaves(results)
            jax.block_until_ready([one for one in leaves if not isinstance(one, jax.core.Tracer)])
            self._used.add(platform)

    def start(self) -> None:
        """Forget what has run."""
        for simulator in self._simulators.values():
            simulator.start()

    def tell(self) -> None:
        """Tell of what has run since `start`, and what was wrong with it."""
        for platform in sorted(self._used & self._simulators.keys()):
            simulator = self._simulators[platform]
            self._journal.tell("ran", on=simulator.name)
            for hazard in simulator.hazards():
                self._journal.tell("hazard", **hazard)
        self._used.clear()

    def _simulator(self, platform: str) -> Any:
        target = self._targets[platform]
        if platform == "tpu":
            from ..tpu.simulator import Simulator
        else:
            from ..gpu.simulator import Simulator
        simulator = Simulator(target, self._root, oracle=False, races=False)
        simulator.install()
        return simulator


_NAMES = ("pallas_call", "kernel", "core_map")


def _functions() -> dict[str, Callable[..., Any]]:
    """The launches of `jax.experimental.pallas`, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `core_map` is deprecated since jax 0.11
        return {name: getattr(pl, name) for name in _NAMES}


def _put(functions: dict[str, Callable[..., Any]]) -> None:
    for name, function in functions.items():
        setattr(pl, name, function)
