"""The options that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pallas_fix.config import Options

STAGES = ("import", "trace", "lower", "compile", "run", "device")
"""The names of `Stage`, which is imported only when something is run."""

EXISTING = click.Path(path_type=Path, readable=False)
"""A path; one that cannot be read is told of with the others, and does not end the run."""


def together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


where = together(
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
    click.option(
        "--before-python",
        type=EXISTING,
        help="The interpreter for the files before: one whose jax still takes them.",
    ),
    click.option("--no-cache", is_flag=True, help="Ask everything anew."),
    click.option(
        "--require",
        type=click.Choice(("device",)),
        help="Take nothing as verified that no device has run.",
    ),
    click.option("-v", "--verbose", is_flag=True, help="Say more: each stage, whole errors."),
)

which = together(
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


def options(given: dict[str, Any]) -> Options:
    """What the command line says over the settings of the project."""
    from pallas_fix.config import Options

    return Options(
        select=given.get("select", ()),
        ignore=given.get("ignore", ()),
        exclude=given.get("exclude", ()),
        targets=given.get("target", ()),
        jax=given.get("jax", ""),
        python=given.get("python"),
        before_python=given.get("before_python"),
        cases=given.get("case", ()),
    )


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
