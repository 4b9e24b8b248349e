"""A job that computes numbers: on the CPU, emulated or interpreted, or on the device."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax

from . import chips, load, numbers
from .chips import Target, Unavailable
from .entered import Entered
from .inputs import inputs_of
from .outputs import Outputs
from .report import Report, Task


def run_on_cpu(task: Task, target: Target, report: Report, entered: Entered) -> None:
    """Compute the numbers of a case without the chip. Raises Stopped where it ends early."""
    state: dict[str, Any] = {}
    top_level = task["entry"] == load.MODULE

    def prepare() -> Any:
        state["simulator"] = simulator = _simulator(task, target)
        simulator.install()
        state["outputs"] = outputs = Outputs()
        outputs.install(target)
        simulator.start()
        if top_level:
            entered.start()
        return load.load(task)

    with chips.mesh(target):
        module = report.stage("import", prepare)
        if not top_level:
            entered.start()
        simulator, outputs = state["simulator"], state["outputs"]

        def run() -> None:
            hazards: dict[tuple[str, str], dict[str, Any]] = {}
            for one in _runs(module, task, outputs, simulator.start):
                report.send(event="numbers", **one)
                for hazard in simulator.hazards():
                    hazards.setdefault((hazard["kind"], hazard["where"]), _hazard(hazard))
            report.send(
                event="ran",
                on=simulator.name,
                steps=getattr(simulator, "accumulations", 0),
                hazards=list(hazards.values()),
            )

        report.stage("run", lambda: _explained(run, simulator))


def run_on_device(task: Task, target: Target, report: Report) -> None:
    """Compute the numbers of a case on the first device. Raises Stopped where it ends early."""
    device = jax.devices()[0]
    report.send(event="ran", on=device.device_kind, steps=0, hazards=[])
    outputs = Outputs()
    outputs.install(target)
    module = report.stage("import", lambda: load.load(task))

    def run() -> None:
        for one in _runs(module, task, outputs, lambda: None):
            report.send(event="numbers", **one)

    report.stage("device", run)


def _explained(run: Callable[[], None], simulator: Any) -> None:
    """Run; what fails is told as the simulator explains it."""
    try:
        run()
    except Exception as error:
        told = getattr(simulator, "explain", lambda same: same)(error)
        if told is error:
            raise
        raise told from None


def _simulator(task: Task, target: Target) -> Any:
    oracle, races = task["oracle"], task["races"]
    if target["platform"] == "tpu":
        from .tpu.simulator import Simulator as Tpu

        return Tpu(target, task["root"], oracle=oracle, races=races)
    from .gpu.simulator import Simulator as Gpu

    return Gpu(target, task["root"], oracle=oracle, races=races)


def _hazard(told: dict[str, Any]) -> dict[str, Any]:
    serious = told["severity"] == "error"
    return {key: told[key] for key in ("kind", "where", "count", "message")} | {"serious": serious}


def _runs(module: Any, task: Task, outputs: Outputs, start: Callable[[], None]) -> Any:
    """Yield what is told of the numbers of each set of inputs, after keeping them."""
    folder = task["numbers"]
    os.makedirs(folder, exist_ok=True)
    if task["entry"] == load.MODULE:
        yield _kept(outputs, folder, 0)
        return
    call_of = inputs_of(module, task)
    function = call_of.bind(load.find(module, task["entry"]))
    traced = jax.jit(function)
    for index, (kind, seed) in enumerate(task["runs"]):
        outputs.kept.clear()
        start()
        arrays = call_of.arrays(seed, task["root"], kind)
        results = jax.block_until_ready(traced(*arrays) if arrays else function())
        if not results:
            yield _kept(outputs, folder, index)
            return  # it makes its inputs itself, so another seed gives nothing new
        told = numbers.keep(results, folder, index)
        yield {"inputs": kind, "seed": seed, "outputs": told}
        if not arrays:
            return


def _kept(outputs: Outputs, folder: str, index: int) -> dict[str, Any]:
    results = jax.block_until_ready(outputs.kept)
    if not results:
        raise Unavailable("it launches no kernel whose numbers could be seen")
    return {"inputs": "own", "seed": 0, "outputs": numbers.keep(results, folder, index)}
