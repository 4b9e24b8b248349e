"""One job on one version of a file: compile it, or run it, or compare what two have computed."""

from __future__ import annotations

import os

from . import compiling, numbers, running
from .chips import Target
from .entered import Entered
from .opened import Opened
from .report import Report, Stopped, Task


def run(task: Task, target: Target, descriptor: int) -> None:
    """Do one job; `descriptor` is where its reports go."""
    report = Report(descriptor, task)
    opened = Opened(task["root"], [task["folder"], task.get("numbers", task["folder"])])
    opened.start()
    try:
        match task["mode"]:
            case "compile":
                compiling.climb(task, target, report, _entered(task, report))
            case "run":
                running.run_on_cpu(task, target, report, _entered(task, report))
            case "device":
                running.run_on_device(task, target, report)
            case "compare":
                _compare(task, report)
    except Stopped:
        pass
    report.send(event="files", **opened.told())


def _entered(task: Task, report: Report) -> Entered:
    path = os.path.join(task["root"], task["file"])
    return Entered(path, lambda name: report.send(event="entered", name=name))


def _compare(task: Task, report: Report) -> None:
    for index, kind in task["pairs"]:
        told = numbers.difference(
            task["before"],
            task["after"],
            index,
            unit=task["unit"],
            steps=task["steps"],
            exact=kind == "exact",
        )
        report.send(event="difference", index=index, **told)
