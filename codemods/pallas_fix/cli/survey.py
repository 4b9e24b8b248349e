"""`pallas-fix survey`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pallas_fix.cli.options import EXISTING, cores, options, output_of, releases, selecting


@click.command()
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option(
    "--from",
    "low",
    required=True,
    metavar="VERSION",
    help="The jax that the code runs on now.",
    shell_complete=releases,
)
@click.option(
    "--to",
    "high",
    default="",
    metavar="VERSION",
    help="The jax that it is to run on. Default: the newest known.",
    shell_complete=releases,
)
@selecting
@output_of(("text", "json"))
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes. Default: the cores.")
@click.option("-v", "--verbose", is_flag=True, help="Name every file.")
def survey(paths: tuple[Path, ...], low: str, high: str, **given: Any) -> int:
    """Tell what breaks below PATH between two versions of jax, and how much of it is repaired.

    The most frequent first. Nothing is written, and no kernel is run.

    Exit status: 0 all was looked at. 2 wrong usage, or a file could not be read or parsed.
    """
    from dataclasses import replace

    from pallas_fix.projects import Projects
    from pallas_fix.report import survey as report
    from pallas_fix.report.output import Outputs
    from pallas_fix.rules import all_rules
    from pallas_fix.survey import survey as look
    from pallas_fix.versions import NEWEST, parse_release

    try:
        first, last = parse_release(low), parse_release(high) if high else NEWEST
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if first >= last:
        raise click.UsageError(f"--from {first} is not older than --to {last}.")
    outputs = Outputs.parse(given["output"], stdout_taken=False, formats=("text", "json"))
    rules = all_rules()
    asked = replace(options(given), jax=str(last))
    found = look(Projects(paths, asked, rules), rules, paths, first, last, given["jobs"] or cores())

    def render(name: str) -> str:
        if name == "json":
            return report.document(found)
        return "".join(f"{line}\n" for line in report.text(found, paths, given["verbose"]))

    if not outputs.emit(render):
        click.echo(render("text"), nl=False)
    return 2 if found.problems else 0
