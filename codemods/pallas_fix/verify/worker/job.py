"""One job: climbs the stages on one version of a file, and reports after each."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from . import chips, load
from .chips import Target, Unavailable
from .entered import Entered
from .failures import describe
from .inputs import Inputs, decode
from .launches import Launches, Program

Task = dict[str, Any]

SEEDS = (0, 1)


class _Stopped(Exception):
    """A stage failed or was the last one asked for."""


class Report:
    """Tells the server what happens, one JSON line each."""

    def __init__(self, descriptor: int, task: Task) -> None:
        self._descriptor = descriptor
        self._task = task

    def send(self, **event: object) -> None:
        os.write(self._descriptor, json.dumps(event).encode() + b"\n")

    def stage(self, name: str, action: Callable[[], Any]) -> Any:
        """Do what a stage asks and report how it went. Raises _Stopped if it failed."""
        self.send(event="begin", stage=name)
        start = time.perf_counter()
        failure: dict[str, str] = {}
        ok: bool | None = True
        value = None
        try:
            value = action()
        except Unavailable as error:
            ok, failure = None, {"message": str(error)}
        except BaseException as error:
            ok, failure = False, describe(error, self._task["root"], self._task["file"])
        seconds = round(time.perf_counter() - start, 3)
        self.send(event="end", stage=name, ok=ok, seconds=seconds, **failure)
        if not ok or name == self._task["until"]:
            raise _Stopped
        return value


def run(task: Task, target: Target, descriptor: int) -> None:
    """Do one job; `descriptor` is where its reports go."""
    report = Report(descriptor, task)
    path = os.path.join(task["root"], task["file"])
    entered = Entered(path, lambda name: report.send(event="entered", name=name))
    try:
        if task["device"]:
            _run_on_device(task, target, report)
        else:
            _climb(task, target, report, entered)
    except _Stopped:
        return


def _climb(task: Task, target: Target, report: Report, entered: Entered) -> None:
    launches = Launches()
    launches.install(target)
    jax.default_backend = lambda: target["platform"]
    top_level = task["entry"] == load.MODULE
    with chips.mesh(target):
        launches.eager = True
        if top_level:
            entered.start()
        module = report.stage("import", lambda: _import(task, launches))
        if not top_level:
            launches.programs.clear()
            entered.start()
        launches.eager = False
        programs = report.stage("trace", lambda: _trace(module, task, launches))
        platform = chips.lowering_platform(target)
        report.stage(
            "lower",
            lambda: [p.traced.lower(lowering_platforms=(platform,)) for p in programs],
        )
        report.stage("compile", lambda: _compile(programs, target, platform))


def _import(task: Task, launches: Launches) -> Any:
    """The user's module; None where only its top-level code is asked for and looked at numbers."""
    try:
        return load.load(task)
    except BaseException as error:
        if not launches.only_misses_numbers(error):
            raise
        if task["entry"] == load.MODULE:
            return None
        what = "the file's top-level code needs the numbers of a kernel, which cannot run here"
        raise Unavailable(what) from error


def _trace(module: Any, task: Task, launches: Launches) -> list[Program]:
    if task["entry"] == load.MODULE:
        if not launches.programs:
            raise Unavailable("the file's top-level code launches no kernel")
        return launches.programs
    function = load.find(module, task["entry"])
    inputs = _inputs(module, task)
    try:
        return [Program(inputs.bind(function), inputs.avals)]
    except Exception:
        if inputs.avals:
            raise
    return _launched_by(inputs.bind(function), launches)


def _launched_by(function: Callable[[], Any], launches: Launches) -> list[Program]:
    """The launches of a function that cannot be traced as a whole, as it looks at its results.

    What it does with the numbers cannot be judged, for there are none.
    """
    launches.eager = True
    try:
        function()
    except BaseException as error:
        if type(error).__name__ == "Skipped":
            raise Unavailable(f"the test skips itself: {error}") from error
        if "interpret mode is supported on CPU" in str(error):
            raise Unavailable("it launches kernels in a way that needs the device") from error
        if not launches.only_misses_numbers(error):
            raise
    finally:
        launches.eager = False
    if not launches.programs:
        raise Unavailable("it can only run on a device: it launches no kernel without one")
    return launches.programs


def _inputs(module: Any, task: Task) -> Inputs:
    if task["maker"]:
        args, kwargs = load.find(module, task["maker"])()
        return Inputs(tuple(args), dict(kwargs))
    args = tuple(decode(arg) for arg in task["args"])
    return Inputs(args, {name: decode(value) for name, value in task["kwargs"]})


def _compile(programs: list[Program], target: Target, platform: str) -> None:
    place = chips.placement(target)
    for program in programs:
        placed = jax.jit(program.function, in_shardings=place, out_shardings=place)
        try:
            placed.trace(*program.avals).lower(lowering_platforms=(platform,)).compile()
        except Exception as error:
            raise chips.as_unavailable(error, target) or error from None


def _run_on_device(task: Task, target: Target, report: Report) -> None:
    device = jax.devices()[0]
    report.send(event="device", name=device.device_kind)
    module = report.stage("import", lambda: load.load(task))

    def run() -> None:
        function = load.find(module, task["entry"])
        inputs = _inputs(module, task)
        call = inputs.bind(function)
        for seed in SEEDS:
            arrays = inputs.arrays(seed, task["root"])
            results = jax.block_until_ready(jax.jit(call)(*arrays) if arrays else call())
            report.send(event="numbers", digests=[_digest(result) for result in results])

    report.stage("device", run)


def _digest(result: Any) -> str:
    if jax.dtypes.issubdtype(result.dtype, jax.dtypes.prng_key):
        result = jax.random.key_data(result)
    array = np.asarray(result)
    head = f"{array.dtype}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()
