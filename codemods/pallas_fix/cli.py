"""The command line: read options, run, report, exit."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pallas_fix import __version__

if TYPE_CHECKING:
    from pallas_fix.config import Options

STAGES = ("import", "trace", "lower", "compile", "device")
"""The names of `Stage`, which is imported only when something is run."""

EXISTING = click.Path(path_type=Path, readable=False)
"""A path; one that cannot be read is told of with the others, and does not end the run."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 1, 2 or 130, as each command's help says."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    signal.signal(signal.SIGTERM, _terminated)
    # Under nohup it is ignored, and stays so.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _terminated)
    try:
        status = cli.main(words, prog_name="pallas-fix", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        _complain(error, words)
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


def _open_closed_streams() -> None:
    """Open what is closed of the standard streams: what is written there goes nowhere."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))


def _terminated(number: int, frame: object) -> None:
    sys.exit(128 + number)


def _complain(error: Exception, words: Sequence[str]) -> None:
    """One line for people; the traceback of an internal error only with -v."""
    from pallas_fix.files import SourceError
    from pallas_fix.pyproject import ConfigError
    from pallas_fix.report.printable import printable

    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or isinstance(error, ConfigError | SourceError):
        click.echo(f"error: {printable(str(error))}", err=True)
        return
    if "-v" in words or "--verbose" in words:
        import traceback

        click.echo(traceback.format_exc(), err=True)
    what = printable(f"{type(error).__name__}: {error}")
    click.echo(f"internal error: {what} (-v shows where; please report it)", err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pallas-fix")
def cli() -> None:
    """Find Pallas kernels that fail, repair them, and verify each repair on the kernel itself."""


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_where = _together(
    click.option("--target", multiple=True, metavar="NAME", help="Chip: tpu7x, v6e, h100, ..."),
    click.option(
        "--until",
        type=click.Choice(STAGES),
        help="The last stage of verification. Default: as far as it goes here.",
    ),
    click.option(
        "--python",
        type=EXISTING,
        help="The interpreter of the project. Default: that of the active virtual environment, "
        "else the one that runs pallas-fix.",
    ),
    click.option("-v", "--verbose", is_flag=True, help="Say more: each stage, whole errors."),
)

_which = _together(
    click.option("--select", multiple=True, metavar="CODES", help="Only these: TPU, GPU001, ..."),
    click.option("--ignore", multiple=True, metavar="CODES", help="Not these."),
    click.option(
        "--exclude", multiple=True, metavar="PATTERN", help="Not these files (.gitignore syntax)."
    ),
    click.option(
        "--jax",
        default="",
        metavar="VERSION",
        help="What the code must run on: 0.12.0.1, or '>=0.9,<0.12'. Default: the locked jax, "
        "else that of --python.",
    ),
    click.option(
        "--case",
        multiple=True,
        metavar="CASE",
        help="Verify with this too: '[path.py:]matmul(bf16[64,256], bf16[256,256])'.",
    ),
)


def _options(given: dict[str, Any]) -> Options:
    """What the command line says over the settings of the project."""
    from pallas_fix.config import Options

    return Options(
        select=given.get("select", ()),
        ignore=given.get("ignore", ()),
        exclude=given.get("exclude", ()),
        targets=given.get("target", ()),
        jax=given.get("jax", ""),
        python=given.get("python"),
        cases=given.get("case", ()),
    )


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=EXISTING, metavar="PATH...")
@click.option("--diff", "diff_only", is_flag=True, help="Write nothing; print what would change.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if anything is found.")
@_which
@_where
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
    from pallas_fix.config import load
    from pallas_fix.files import Source
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
    outputs = output.Outputs.parse(given["output"], stdout_taken=diff_only or (stdin and not check))
    places = [given["stdin_filename"] or Path("stdin.py")] if stdin else list(paths)
    rules = all_rules()
    config = load(places, _options(given), rules)
    data = sys.stdin.buffer.read() if stdin else b""
    request = Request(
        config,
        places,
        Source(places[0], data) if stdin else None,
        write=not (diff_only or check),
        verify=not given["no_verify"],
        until=Stage(given["until"] or "device"),
        unverified=given["unverified"],
        jobs=given["jobs"] or _cores(),
    )
    selected = {code: rule for code, rule in rules.items() if config.selects(code)}
    with progress(not given["quiet"]) as say:
        run = Run(request, selected, say)
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


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cli.command()
@click.argument("case")
@_where
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
    config = load([path], _options(given), all_rules())
    until = Stage(given["until"] or "device")
    with progress(True) as say, Ladder(config.python, jobs=1, until=until) as ladder:
        say(f"verifying {case}")
        results = climb.climb(read, path, config, ladder)
    for line in climb.lines(results, given["verbose"]):
        click.echo(line)
    return climb.status(results, until, asked=given["until"] is not None)


@cli.command()
@click.argument("what", metavar="CODE|MESSAGE|-")
def explain(what: str) -> int:
    """Say what a rule or an error message means, and what to do about it.

    '-' reads a message or a whole traceback from stdin. Exit status: 1 if no rule knows it.
    """
    from pallas_fix.explain import answer
    from pallas_fix.rules import all_rules

    text = sys.stdin.buffer.read().decode(errors="replace") if what == "-" else what
    known, lines = answer(text, all_rules())
    for line in lines:
        click.echo(line, err=not known)
    return 0 if known else 1


@cli.command()
def rules() -> int:
    """List the rules."""
    from pallas_fix.explain import table
    from pallas_fix.rules import all_rules

    for line in table(all_rules()):
        click.echo(line)
    return 0


@cli.command()
@click.argument("paths", nargs=-1, type=EXISTING, metavar="[PATH]...")
@_which
@_where
def config(paths: tuple[Path, ...], **given: Any) -> int:
    """Show the settings that a run over PATH (default: the current folder) would have."""
    from pallas_fix.config import load
    from pallas_fix.rules import all_rules
    from pallas_fix.settings import described

    found = load(paths or [Path()], _options(given), all_rules())
    for line in described(found, all_rules()):
        click.echo(line)
    return 0
