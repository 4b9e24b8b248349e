"""A job that climbs from import to machine code, without numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from . import chips, load
from .chips import Target, Unavailable
from .entered import Entered
from .inputs import inputs_of
from .launches import Launches, Program
from .report import Report, Task


def climb(task: Task, target: Target, report: Report, entered: Entered) -> None:
    """Import, trace, lower and compile. Raises Stopped where it ends early."""
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
        place = _placement(target)
        lowered = report.stage("lower", lambda: _lower(programs, target, place))
        report.stage("compile", lambda: _compile(lowered, target, place))


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
    inputs = inputs_of(module, task)
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


def _placement(target: Target) -> jax.sharding.Sharding | Unavailable:
    """Where the program is to run; it can be lowered, but not compiled, without knowing that."""
    try:
        return chips.placement(target)
    except Unavailable as error:
        return error


def _lower(
    programs: list[Program], target: Target, place: jax.sharding.Sharding | Unavailable
) -> list[Any]:
    platforms = (chips.lowering_platform(target),)
    if isinstance(place, Unavailable):
        return [program.traced.lower(lowering_platforms=platforms) for program in programs]
    lowered = []
    for program in programs:
        placed = jax.jit(program.function, in_shardings=place, out_shardings=place)
        lowered.append(placed.trace(*program.avals).lower(lowering_platforms=platforms))
    return lowered


def _compile(
    lowered: list[Any], target: Target, place: jax.sharding.Sharding | Unavailable
) -> None:
    if isinstance(place, Unavailable):
        raise place
    for program in lowered:
        try:
            program.compile()
        except Exception as error:
            raise chips.as_unavailable(error, target) or error from None
