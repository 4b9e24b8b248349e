"""The command line: read options, run, report, exit."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence

import click

from pallas_fix import __version__
from pallas_fix.cli import about
from pallas_fix.cli.apply import apply
from pallas_fix.cli.record import record
from pallas_fix.cli.survey import survey
from pallas_fix.cli.verify import verify


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


for command in (apply, verify, record, survey, about.explain, about.rules, about.config):
    cli.add_command(command)
