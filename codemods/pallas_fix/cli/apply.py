"""`pallas-fix apply`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pallas_fix.cli.options import EXISTING, cores, options, where, which


@click.command()
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option("--diff", "diff_only", is_flag=True, help="Write nothing; print what would change.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if anything is found.")
@which
@where
@click.option(
    "--run",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Run 'pytest -q tests' on a copy of the project, before and after; verify with what it "
    "launches.",
)
@click.option("--no-verify", is_flag=True, help="Verify nothing; write only certain fixes.")
@click.option("--unverified", is_flag=True, help="Write plausible fixes that nothing verified too.")
@click.option("--stdin-filename", type=EXISTING, metavar="PATH", help="What '-' is called.")
@click.option(
    "--output", multiple=True, metavar="FORMAT[=FILE]", help="text (stderr) or json (stdout)."
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes. Default: the cores.")
@click.option("-q", "--quiet", count=True, help="Say only what is left to do; -qq: nothing.")
def apply(paths: tuple[Path, ...], **given: Any) -> int:
    """Repair the kernels below PATH in place; say what was done and how that is known.

    PATH is a file or a folder. '-' reads stdin and writes stdout.

    Exit status: 0 nothing is left to do. 1 findings remain, or --diff or --check would change
    something, or a fix was refuted or could not be verified. 2 wrong usage, or a file could not
    be read, parsed or written. 130 interrupted.
    """
    from pallas_fix.files import Source
    from pallas_fix.projects import Projects
    from pallas_fix.report import output
    from pallas_fix.report.terminal import colour, progress, width
    from pallas_fix.report.text import Look
    from pallas_fix.rules import all_rules
    from pallas_fix.run import Request, Run
    from pallas_fix.verify.verdict import Stage

    diff_only, check = given["diff_only"], given["check"]
    stdin = Path("-") in paths
    if diff_only and check:
        raise click.UsageError("--diff and --check exclude each other.")
    if stdin and len(paths) > 1:
        raise click.UsageError("'-' stands alone: name no other PATH.")
    if given["stdin_filename"] and not stdin:
        raise click.UsageError("--stdin-filename goes with '-' as the PATH.")
    if given["commands"] and given["no_verify"]:
        raise click.UsageError("--run and --no-verify exclude each other.")
    outputs = output.Outputs.parse(given["output"], stdout_taken=diff_only or (stdin and not check))
    places = [given["stdin_filename"] or Path("stdin.py")] if stdin else list(paths)
    rules = all_rules()
    projects = Projects(places, options(given), rules)
    data = sys.stdin.buffer.read() if stdin else b""
    request = Request(
        projects,
        places,
        Source(places[0], data) if stdin else None,
        write=not (diff_only or check),
        verify=not given["no_verify"],
        until=Stage(given["until"] or "device"),
        cache=not given["no_cache"],
        device=given["require"] is not None,
        unverified=given["unverified"],
        jobs=given["jobs"] or cores(),
        commands=given["commands"],
    )
    with progress(not given["quiet"]) as say:
        run = Run(request, rules, say)
        try:
            account = run.go()
        except KeyboardInterrupt:
            account = replace(run.account(), interrupted=True)
    if diff_only:
        for part in output.diff(account):
            click.echo(part, nl=False)
    elif stdin and not check:
        click.echo(output.result(account, data), nl=False)
    verbosity = int(given["verbose"]) - given["quiet"]
    outputs.write(account, Look(colour(), width(), verbosity), given["quiet"] > 1)
    if account.interrupted:
        click.echo("interrupted: no file is half written; the rest was not looked at", err=True)
    return account.status
