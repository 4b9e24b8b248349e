"""`pallas-fix record`."""

from __future__ import annotations

from pathlib import Path

import click

from pallas_fix.cli.options import EXISTING


@click.command()
@click.argument("commands", nargs=-1, required=True, metavar="COMMAND...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Default: pallas-fix-cases.toml at the root of the project, which apply reads by itself.",
)
@click.option("--target", multiple=True, metavar="NAME", help="Chip: tpu7x, v6e, h100, ...")
@click.option("--python", type=EXISTING, help="The interpreter of the project.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def record(
    commands: tuple[str, ...],
    output: Path | None,
    target: tuple[str, ...],
    python: Path | None,
    quiet: bool,
) -> int:
    """Run each COMMAND, such as 'pytest -q tests', and keep what it launches as cases.

    It runs on a copy of the project of the current folder. Without an accelerator the kernels run
    emulated or interpreted. The file can be committed: `pallas-fix apply` verifies with its cases.

    Exit status: 0 recorded. 1 a command failed, or launched nothing that a case can say. 2 wrong
    usage. 130 interrupted.
    """
    from pallas_fix.config import CASE_FILE, Options, load
    from pallas_fix.recording import record as recorded
    from pallas_fix.report.printable import printable
    from pallas_fix.report.terminal import progress
    from pallas_fix.rules import all_rules
    from pallas_fix.verify.commands import commands_of

    config = load([Path()], Options(targets=target, python=python), all_rules())
    with progress(not quiet) as say:
        run = commands_of(commands, config.root, config.python, config.targets, say, "record")
        recording = recorded(run, config, output or config.root / CASE_FILE)
    if recording.cases:
        recording.write()
    for line in recording.lines():
        if not quiet:
            click.echo(printable(line), err=True)
    return recording.status
