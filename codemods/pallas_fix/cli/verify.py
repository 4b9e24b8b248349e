"""`pallas-fix verify`."""

from __future__ import annotations

from typing import Any

import click

from pallas_fix.cli.options import options, where


@click.command()
@click.argument("case")
@where
def verify(case: str, **given: Any) -> int:
    """Take one CASE up the ladder: import, trace, lower, compile, and run where there is a chip.

    CASE is 'path.py:matmul(bf16[64,256], bf16[256,256])', with the file of the entry.

    Exit status: 0 every stage was passed. 1 one failed. 2 wrong usage, or a stage that was asked
    for could not be tried here. 130 interrupted.
    """
    from pallas_fix import climb
    from pallas_fix.config import load
    from pallas_fix.report.terminal import progress
    from pallas_fix.rules import all_rules
    from pallas_fix.verify.ladder import Ladder
    from pallas_fix.verify.verdict import Stage

    read, path = climb.read_case(case)
    config = load([path], options(given), all_rules())
    until = Stage(given["until"] or "device")
    with progress(True) as say, Ladder(config.python, jobs=1, until=until) as ladder:
        say(f"verifying {case}")
        results = climb.climb(read, path, config, ladder)
    for line in climb.lines(results, given["verbose"]):
        click.echo(line)
    return climb.status(results, until, asked=given["until"] is not None)
