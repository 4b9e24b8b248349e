"""The commands that only tell: `explain`, `rules`, `config`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from pallas_fix.cli.options import EXISTING, codes, completing, options, where, which


@click.command()
@click.argument("what", metavar="CODE|MESSAGE|-", shell_complete=completing(codes))
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


@click.command()
def rules() -> int:
    """List the rules."""
    from pallas_fix.explain import table
    from pallas_fix.rules import all_rules

    for line in table(all_rules()):
        click.echo(line)
    return 0


@click.command()
@click.argument("paths", nargs=-1, type=EXISTING, metavar="[PATH]...")
@which
@where
def config(paths: tuple[Path, ...], **given: Any) -> int:
    """Show what is in force at PATH (default: the current folder), and who set it."""
    from pallas_fix.projects import Projects
    from pallas_fix.report.printable import printable
    from pallas_fix.rules import all_rules
    from pallas_fix.settings import described

    places = paths or (Path(),)
    for line in described(Projects(places, options(given), all_rules()), places, all_rules()):
        click.echo(printable(line))
    return 0
