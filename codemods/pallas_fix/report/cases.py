"""What the ladder saw of one case: for people in lines, for programs as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from pallas_fix import __version__
from pallas_fix.report.printable import inert, printable
from pallas_fix.verify.verdict import (
    CaseResult,
    Comparison,
    Hazard,
    Resources,
    Side,
    StageResult,
    Verdict,
)

_ANSWERS = {True: "ok", False: "failed", None: "not available"}


def lines(result: CaseResult, verbose: bool) -> Iterator[str]:
    """A line for each stage, the error where one failed (whole if `verbose`), and the numbers.

    One version is told of where before and after are the same.
    """
    yield from map(printable, _lines(result, verbose))


def _lines(result: CaseResult, verbose: bool) -> Iterator[str]:
    tools = f" ({', '.join(result.tools)})" if result.tools else ""
    yield f"{result.case.partition(' @ ')[0]} @ {result.target}{tools}"
    sides = [("", result.after)]
    if result.before is not result.after and result.before != result.after:
        sides = [("before", result.before), ("after", result.after)]
    for name, side in sides:
        if name:
            yield f"  {name}"
        yield from _side(side, verbose)
    for comparison in result.compared:
        yield f"  {_compared(comparison)}"


def _side(side: Side, verbose: bool) -> Iterator[str]:
    for stage in side.stages:
        seconds = f"{stage.seconds:.1f} s" if stage.ok is not None else ""
        seconds = "cached" if stage.cached else seconds
        told = f" {side.ran_on[-1]}" if stage.ok and stage.stage == "run" and side.ran_on else ""
        yield f"    {stage.stage:<8}{_ANSWERS[stage.ok]:<14}{seconds}{told}".rstrip()
        if not stage.ok:
            yield from _error(stage, verbose)
    for hazard in side.hazards:
        yield f"    {hazard_line(hazard)}"
    for one in side.resources:
        yield f"    {_resources(one)}"


def _error(stage: StageResult, verbose: bool) -> Iterator[str]:
    place = f" ({stage.where})" if stage.where else ""
    words = ((f"{stage.error}: " if stage.error else "") + stage.message).strip().splitlines()
    for number, line in enumerate(words if verbose else words[:1]):
        yield f"        {line}{place if number == 0 else ''}"


def hazard_line(hazard: Hazard) -> str:
    """A hazard in one line: what a compiler does not see."""
    word = "hazard" if hazard.serious else "note"
    where = f"{hazard.where}: " if hazard.where else ""
    times = f" ({hazard.count} times)" if hazard.count > 1 else ""
    return printable(f"{word}: {where}{hazard.kind}: {hazard.message}{times}")


def _resources(one: Resources) -> str:
    return f"{one.kernel}: {one.registers} registers, {one.spilled} bytes spilled"


def _compared(comparison: Comparison) -> str:
    on = f"on {comparison.on} ({'; '.join(comparison.inputs)})"
    if comparison.same:
        return f"the same numbers, bit for bit, {on}"
    if comparison.close:
        return f"the same numbers within the bound {on}: {comparison.message}"
    what = "not compared" if comparison.same is None else "other numbers"
    return printable(f"{what} {on}: {comparison.message}")


def verified(
    name: str,
    results: Sequence[CaseResult],
    verdicts: Sequence[Verdict] | None,
    status: int,
    verbose: bool,
) -> str:
    """What `pallas-fix verify` answers, as `text` or `json`; `verdicts` where two were compared."""
    if name == "json":
        content = {
            "version": 1,
            "tool": f"pallas-fix {__version__}",
            "status": status,
            "cases": [document(result) for result in results],
            "verdicts": [
                {"level": verdict.level, "evidence": verdict.evidence} for verdict in verdicts or ()
            ],
        }
        return json.dumps(content, indent=2) + "\n"
    told = [line for result in results for line in lines(result, verbose)]
    told += [printable(f"{verdict.level}: {verdict.evidence}") for verdict in verdicts or ()]
    return "".join(f"{inert(line)}\n" for line in told)


def document(result: CaseResult, command: Sequence[str] = ()) -> dict[str, Any]:
    """All of it for programs; `command` is what reproduces it."""
    return {
        "case": result.case,
        "target": result.target,
        "tools": result.tools,
        "before": _side_document(result.before),
        "after": _side_document(result.after),
        "compared": [asdict(one) for one in result.compared],
        "command": shlex.join(command),
    }


def _side_document(side: Side) -> dict[str, Any]:
    return {
        "stages": [asdict(stage) for stage in side.stages],
        "ran_on": side.ran_on,
        "hazards": [asdict(one) for one in side.hazards],
        "resources": [asdict(one) for one in side.resources],
    }
