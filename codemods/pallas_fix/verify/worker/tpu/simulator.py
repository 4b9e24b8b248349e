"""Runs TPU kernels on the CPU: interpreted by jax, with an emulated MXU where they drive it."""

from __future__ import annotations

import dataclasses
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from ..chips import Target, Unavailable
from ..internals import gpu_interpreter
from ..internals.generations import generation
from .gaps import explain
from .hazards import Hazard
from .kernel import Kernels
from .launch import Launches
from .machine import CHIPS, Machine
from .ops import Operations
from .oracle import Oracle
from .scopes import Scopes
from .where import innermost, user_line


class Simulator:
    """One TPU for one job, in a process of its own: `install` changes jax for good.

    `root` is the folder of the user's project. With `oracle` the file is one before a repair, and
    what jax refuses is done as its author meant it. With `races` unordered accesses of memory are
    looked for. Raises Unavailable where this jax or this chip is not known.
    """

    def __init__(self, target: Target, root: str, *, oracle: bool, races: bool) -> None:
        generation()
        chip = CHIPS.get(target["kind"])
        if chip is None:
            raise Unavailable(f"stage not available: no emulator for {target['kind']}")
        self._root = root
        self._kernels = Kernels(chip)
        self._kernels.on_enter = self._harvest
        self._params = _params(races)
        self._oracle = oracle
        self._races = races
        self._lock = threading.Lock()
        self._found: list[Hazard] = []
        self._operations = 0
        self._accumulations = 0

    @property
    def name(self) -> str:
        """Where the last run was, and how."""
        self._harvest_all()
        return "CPU (emulated MXU)" if self._operations else "CPU (interpreted)"

    @property
    def accumulations(self) -> int:
        """How many products the last run made, at most one rounding of each number for each."""
        self._harvest_all()
        return self._accumulations

    def install(self) -> None:
        """Put the stand-ins in the place of jax's functions, before users import those."""

        def site() -> str:
            return user_line(self._root)

        oracle = Oracle(self._kernels, site) if self._oracle else None
        operations = Operations(self._kernels, site, oracle)
        scopes = Scopes(self._kernels)
        launches = Launches(self._kernels, self._params, accepts_scratch=self._oracle)
        stand_ins = {
            pltpu: operations.stand_ins(),
            pl: launches.stand_ins() | {"run_scoped": scopes.run_scoped},
            jax: {"empty_ref": scopes.empty_ref},
        }
        if oracle is not None:
            self._kernels.make_space = oracle.space
            for module, functions in oracle.stand_ins(scopes.empty_ref).items():
                stand_ins[module] = stand_ins.get(module, {}) | functions
            oracle.install()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some of them are deprecated
            for module, functions in stand_ins.items():
                for name, stand_in in functions.items():
                    _replace(module, name, stand_in)
        pltpu.set_tpu_interpret_mode(self._params)
        gpu_interpreter.do_without()
        if self._races:
            from ..internals.races import watch_races

            watch_races(self._race)

    def start(self) -> None:
        """Forget what has run."""
        self._harvest_all()
        self._found.clear()
        self._operations = self._accumulations = 0
        pltpu.reset_tpu_interpret_mode_state()

    def hazards(self) -> list[dict[str, Any]]:
        """What was wrong in the last run: {kind, severity, where, count, message}."""
        self._harvest_all()
        merged: dict[tuple[str, str, str], dict[str, Any]] = {}
        for hazard in self._found:
            where = str(hazard.site)
            one = merged.setdefault(
                (hazard.kind, hazard.severity, where),
                {
                    "kind": hazard.kind,
                    "severity": hazard.severity,
                    "where": where,
                    "count": 0,
                    "message": hazard.message,
                },
            )
            one["count"] += hazard.count
        return list(merged.values())

    def explain(self, error: Exception) -> Exception:
        """What to raise for an error of a run: Unavailable where jax's interpreter has a gap."""
        return explain(error)

    def _harvest_all(self) -> None:
        for machine in self._kernels.machines.values():
            self._harvest(machine)

    def _harvest(self, machine: Machine) -> None:
        """Take what a kernel that has ended leaves behind, for the next one finds the MXU empty."""
        with self._lock:
            self._found += machine.hazards()
            self._operations += machine.operations
            self._accumulations += machine.accumulations
            machine.reset()

    def _race(self, access: str, places: Iterator[tuple[str, int]]) -> None:
        message = (
            f"this {access} may come before or after another access of the same memory: "
            "wait for the copy or the semaphore that orders them"
        )
        with self._lock:
            self._found.append(Hazard("race", "error", innermost(places, self._root), 1, message))


def _replace(module: ModuleType, name: str, stand_in: Callable[..., Any]) -> None:
    """Put a stand-in wherever jax's loaded modules name that function of a public module."""
    original = getattr(module, name)
    for path, loaded in list(sys.modules.items()):
        if path == "jax" or path.startswith("jax."):
            for attribute, value in list(vars(loaded).items()):
                if value is original:
                    setattr(loaded, attribute, stand_in)
    setattr(module, name, stand_in)


def _params(races: bool) -> Any:
    """How jax interprets: memory that nothing was written to holds NaN, the largest integers."""
    fields = {field.name for field in dataclasses.fields(pltpu.InterpretParams)}
    going_on = {"on_race": "warn"} if "on_race" in fields else {}
    return pltpu.InterpretParams(detect_races=races, uninitialized_memory="nan", **going_on)
