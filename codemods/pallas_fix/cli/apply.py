"""`pallas-fix apply`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pallas_fix.cli.options import (
    EXISTING,
    check_counting,
    cores,
    counting,
    options,
    output,
    repeated,
    where,
    which,
)

if TYPE_CHECKING:
    from pallas_fix.baseline import Baseline
    from pallas_fix.changes import Changes
    from pallas_fix.report.account import Account
    from pallas_fix.sieve import Key


@click.command()
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option("--diff", "diff_only", is_flag=True, help="Write nothing; print what would change.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if anything is found.")
@which
@counting
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
@output
@click.option("--statistics", is_flag=True, help="Count by rule and outcome; show no finding.")
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
    from pallas_fix.report.output import Outputs, diff, result
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
    check_counting(given, stdin=stdin)
    outputs = Outputs.parse(given["output"], stdout_taken=diff_only or (stdin and not check))
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
        force_exclude=given["force_exclude"],
        changes=_changes(given),
        baseline=_baseline(given),
        add_ignore=(given["reason"] or "") if given["add_ignore"] else None,
    )
    with progress(not given["quiet"]) as say:
        run = Run(request, rules, say)
        try:
            account = run.go()
        except KeyboardInterrupt:
            account = replace(run.account(), interrupted=True)
    if given["write_baseline"] and not account.interrupted:
        account = _recorded(account, given["write_baseline"], run.left())
    account = replace(account, options=repeated(given))
    if diff_only:
        for part in diff(account):
            click.echo(part, nl=False)
    elif stdin and not check:
        click.echo(result(account, data), nl=False)
    verbosity = int(given["verbose"]) - given["quiet"]
    outputs.write(
        account, Look(colour(), width(), verbosity, given["statistics"]), given["quiet"] > 1
    )
    if account.interrupted:
        click.echo("interrupted: no file is half written; the rest was not looked at", err=True)
    return account.status


def _changes(given: dict[str, Any]) -> Changes | None:
    if given["since"] is None and not given["staged"]:
        return None
    from pallas_fix.changes import Changes

    return Changes(given["since"])


def _baseline(given: dict[str, Any]) -> Baseline | None:
    if given["baseline"] is None:
        return None
    from pallas_fix.baseline import Baseline

    return Baseline.read(given["baseline"])


def _recorded(account: Account, file: Path, left: Mapping[str, Mapping[Key, int]]) -> Account:
    """The account after all that is left was written to a baseline."""
    from pallas_fix.baseline import write_baseline

    count = write_baseline(file, left)
    note = f"{file} knows {count} finding{'' if count == 1 else 's'} from now on"
    return replace(account, recorded=True, notes=(*account.notes, note))
