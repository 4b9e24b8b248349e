"""What a survey found, for people and for programs."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pallas_fix import __version__
from pallas_fix.report.printable import printable
from pallas_fix.survey import Group, Lot, Survey, Use

_SHOWN = 3
"""So many files of a form are named; all of them with `-v`."""
_HEADINGS = {
    Lot.BREAKS: "Breaks: works on jax {low}, fails on {high}",
    Lot.WARNS: "Warns: deprecated on jax {high}",
    Lot.BROKEN: "Broken: fails on jax {low} already",
}


def text(found: Survey, paths: Sequence[Path], verbose: bool) -> Iterator[str]:
    """The survey for people, line by line."""
    files = {use.path for use in found.uses}
    yield (
        f"jax {found.low} to {found.high}: {len(files)} of {_count(found.looked_at, 'file')} "
        f"{'uses' if len(files) == 1 else 'use'} what changes"
    )
    for lot, heading in _HEADINGS.items():
        groups = found.groups(lot)
        if groups:
            yield ""
            uses = sum(len(group.uses) for group in groups)
            told = heading.format(low=found.low, high=found.high)
            yield f"{told} ({_count(uses, 'use')} of {_count(len(groups), 'form')})"
            yield "  uses  files  since     repaired"
            for group in groups:
                yield from _group(group, verbose)
    yield from _left(found, paths)
    for problem in found.problems:
        yield printable(f"error: {problem}")


def _group(group: Group, verbose: bool) -> Iterator[str]:
    repaired = f"{group.repaired}/{len(group.uses)}"
    yield printable(
        f"{len(group.uses):>6}  {len(group.files):>5}  {group.since!s:<8}  {repaired:>8}  "
        f"{group.code} {group.what}"
    )
    named = sorted(group.files.items(), key=lambda item: (-item[1], item[0]))
    shown = named if verbose else named[:_SHOWN]
    for path, count in shown:
        yield printable(f"{'':>8}{count} in {path}")
    if len(named) > len(shown):
        yield f"{'':>8}and in {len(named) - len(shown)} more files (-v)"


def _left(found: Survey, paths: Sequence[Path]) -> Iterator[str]:
    if not found.uses:
        return
    repaired = sum(use.repaired for use in found.uses)
    where = " ".join(shlex.quote(str(path)) for path in paths)
    yield ""
    yield printable(
        f"{repaired} of {_count(len(found.uses), 'use')} {'is' if repaired == 1 else 'are'} "
        f"repaired by: pallas-fix apply --jax {found.high} {where}"
    )
    left = [use for use in found.uses if not use.repaired]
    if left:
        yield "By hand:"
    for use in sorted(left, key=lambda use: (use.path, use.finding.span)):
        yield from _by_hand(use)


def _by_hand(use: Use) -> Iterator[str]:
    yield printable(
        f"  {use.path}:{use.finding.span.line}: {use.finding.code} {use.finding.message}"
    )
    reason = use.finding.reason
    if reason is not None:
        yield printable(f"    {reason.text}: {reason.way_out}")


def document(found: Survey) -> str:
    """The survey as JSON: every use, with its place, its lot, and the reason without a fix."""
    return f"{json.dumps(_data(found), indent=2, ensure_ascii=True)}\n"


def _data(found: Survey) -> dict[str, Any]:
    return {
        "tool": "pallas-fix",
        "version": __version__,
        "from": str(found.low),
        "to": str(found.high),
        "files": found.looked_at,
        "uses": [_use(use) for use in found.uses],
        "problems": [str(problem) for problem in found.problems],
    }


def _use(use: Use) -> dict[str, Any]:
    change, reason = use.change, use.finding.reason
    return {
        "path": os.fspath(use.path),
        "line": use.finding.span.line,
        "code": use.finding.code,
        "what": use.what,
        "message": use.finding.message,
        "lot": str(use.lot),
        "works": str(change.works),
        "warns": str(change.warns) if change.warns else None,
        "fails": str(change.fails) if change.fails else None,
        "repaired": use.repaired,
        "reason": reason.code if reason else None,
    }


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
