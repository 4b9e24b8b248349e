"""The options that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pallas_fix.report.formats import CASE_FORMATS, FORMATS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pallas_fix.config import Options

STAGES = ("import", "trace", "lower", "compile", "run", "device")
"""The names of `Stage`, which is imported only when something is run."""

EXISTING = click.Path(path_type=Path, readable=False)
"""A path; one that cannot be read is told of with the others, and does not end the run."""


FILE = click.Path(path_type=Path, dir_okay=False)

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem | str]"]


def completing(words: Callable[[], Iterable[str]]) -> Complete:
    """What a shell offers for a value that is some of the words, separated by commas."""

    def complete(
        context: click.Context, parameter: click.Parameter, typed: str
    ) -> list[CompletionItem | str]:
        *before, last = typed.split(",")
        start = "".join(f"{word}," for word in before)
        return [f"{start}{word}" for word in words() if word.startswith(last)]

    return complete


def codes() -> list[str]:
    """The codes of the rules."""
    from pallas_fix.rules import all_rules

    return list(all_rules())


def _prefixes() -> list[str]:
    return [*dict.fromkeys(code.rstrip("0123456789") for code in codes()), *codes()]


def _targets() -> Iterable[str]:
    from pallas_fix.targets import TARGETS

    return TARGETS


def _releases() -> Iterable[str]:
    from pallas_fix.versions import RELEASES

    return map(str, reversed(RELEASES))


def releases(
    context: click.Context, parameter: click.Parameter, typed: str
) -> list[CompletionItem | str]:
    """What a shell offers for a version of jax."""
    return completing(_releases)(context, parameter, typed)


def together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


where = together(
    click.option(
        "--target",
        multiple=True,
        metavar="NAME",
        help="Chip: tpu7x, v6e, h100, ...",
        shell_complete=completing(_targets),
    ),
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

selecting = together(
    click.option(
        "--select",
        multiple=True,
        metavar="CODES",
        help="Only these: TPU, GPU001, ...",
        shell_complete=completing(_prefixes),
    ),
    click.option(
        "--ignore",
        multiple=True,
        metavar="CODES",
        help="Not these.",
        shell_complete=completing(_prefixes),
    ),
    click.option(
        "--exclude", multiple=True, metavar="PATTERN", help="Not these files (.gitignore syntax)."
    ),
)
"""Which rules look at which files."""

which = together(
    selecting,
    click.option(
        "--jax",
        default="",
        metavar="VERSION",
        help="What the code must run on: 0.12.0.1, or '>=0.9,<0.12'. Default: the locked jax, "
        "else that of --python.",
        shell_complete=completing(_releases),
    ),
    click.option(
        "--case",
        multiple=True,
        metavar="CASE",
        help="Verify with this too: '[path.py:]matmul(bf16[64,256], bf16[256,256])'.",
    ),
)


counting = together(
    click.option(
        "--force-exclude", is_flag=True, help="Leave excluded files out also where they are named."
    ),
    click.option(
        "--since",
        metavar="REV",
        help="Only what changed since the merge base of REV and HEAD, and what is not committed.",
    ),
    click.option("--staged", is_flag=True, help="Only what is staged for the next commit."),
    click.option("--baseline", type=FILE, metavar="FILE", help="Only what is not known to FILE."),
    click.option(
        "--write-baseline",
        type=FILE,
        metavar="FILE",
        help="Have FILE know all that is left, and exit with 0.",
    ),
    click.option("--add-ignore", is_flag=True, help="Write comments that ignore all that is left."),
    click.option("--reason", metavar="TEXT", help="The reason in these comments."),
)
"""What of all that is found counts."""


def output_of(formats: Sequence[str]) -> Callable[[Any], Any]:
    """The option that names some of the formats."""
    first, *others = formats
    return click.option(
        "--output",
        multiple=True,
        metavar="FORMAT[=FILE]",
        help=f"{first} (stderr), {', '.join(others)} (stdout), or into a file; may be repeated.",
        shell_complete=completing(lambda: formats),
    )


output = output_of(FORMATS)
case_output = output_of(CASE_FORMATS)


def check_counting(given: dict[str, Any], *, stdin: bool) -> None:
    """Raise UsageError where options of `counting` do not go together."""
    if given["since"] is not None and given["staged"]:
        raise click.UsageError("--since and --staged exclude each other.")
    if given["write_baseline"] and (given["since"] is not None or given["staged"]):
        raise click.UsageError("--write-baseline writes all that is found: leave --since out.")
    if given["write_baseline"] and stdin:
        raise click.UsageError("--write-baseline looks at files, not at '-'.")
    if given["add_ignore"] and given["check"]:
        raise click.UsageError("--add-ignore writes, and --check does not: use --diff.")
    if given["reason"] is not None:
        from pallas_fix.ignoring import is_reason

        if not given["add_ignore"]:
            raise click.UsageError("--reason goes with --add-ignore.")
        if not is_reason(given["reason"]):
            raise click.UsageError("--reason is one line of text, without a comment of its own.")


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


def repeated(given: dict[str, Any]) -> tuple[str, ...]:
    """The words that another run needs to find and verify the same.

    Without those of --case and --run: each verdict knows its own.
    """
    words = [f"--{name.replace('_', '-')}" for name in ("no_verify", "unverified") if given[name]]
    named = "select ignore target jax python before_python until require".split()
    for name in named:
        values = given[name] if isinstance(given[name], tuple) else (given[name],)
        for value in values:
            if value:
                words += [f"--{name.replace('_', '-')}", str(value)]
    return tuple(words)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
