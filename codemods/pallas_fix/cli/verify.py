"""`pallas-fix verify`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from pallas_fix.cli.options import EXISTING, case_output, cores, options, where


@click.command()
@click.argument("cases", nargs=-1, required=True, metavar="CASE...")
@click.option(
    "--compare",
    type=EXISTING,
    metavar="OTHER.py",
    help="Is this file the same? It is taken in the place of the first.",
)
@where
@case_output
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes. Default: the cores.")
def verify(cases: tuple[str, ...], compare: Path | None, **given: Any) -> int:
    """Take each CASE up the ladder: import, trace, lower, compile, run, device.

    CASE is 'path.py:matmul(bf16[64,256], bf16[256,256]) @ tpu7x', with the file of the entry.

    \b
    import    the file loads
    trace     names, signatures, shapes and dtypes fit this jax
    lower     block specs and memory spaces are accepted
    compile   the real compiler makes machine code for the chip; that is no proof of numbers
    run       numbers, on the CPU: an emulated MXU, or jax's interpreters
    device    numbers, on the chip where jax sees one

    docs/proof.md says more of what each shows, and what it does not.

    Exit status: 0 every stage was passed; with --compare: the numbers are equal, bit for bit. 1 a
    stage failed, or there is a hazard; with --compare: the numbers differ, the other file fails,
    or it has a hazard that the first has not. 2 wrong usage, or it could not be verified as far
    as asked. 130 interrupted.
    """
    from pallas_fix import verify_case
    from pallas_fix.projects import Projects
    from pallas_fix.report.cases import verified
    from pallas_fix.report.formats import CASE_FORMATS
    from pallas_fix.report.output import Outputs
    from pallas_fix.report.terminal import progress
    from pallas_fix.rules import all_rules
    from pallas_fix.verify.cache import Cache, default_folder
    from pallas_fix.verify.ladder import Ladder
    from pallas_fix.verify.verdict import Stage

    read = [verify_case.read_case(case) for case in cases]
    projects = Projects([path for _, path in read], options(given), all_rules())
    until = Stage(given["until"] or "device")
    outputs = Outputs.parse(given["output"], stdout_taken=False, formats=CASE_FORMATS)
    results = []
    ladders: dict[Path, Ladder] = {}
    with progress(True) as say, ExitStack() as opened:
        for case, path in read:
            config = projects.of(path)
            if config.python not in ladders:
                ladders[config.python] = opened.enter_context(
                    Ladder(
                        config.python,
                        before_python=config.before_python if compare else None,
                        jobs=given["jobs"] or cores(),
                        until=until,
                        cache=None if given["no_cache"] else Cache(default_folder()),
                        say=say,
                    )
                )
            results += verify_case.climb(case, path, config, ladders[config.python], compare)
    device = given["require"] is not None
    if compare is None:
        found = None
        status = verify_case.status(results, until, asked=device or given["until"] is not None)
    else:
        found = verify_case.verdicts(results, device)
        status = verify_case.compared_status(found)

    def render(name: str) -> str:
        return verified(name, results, found, status, given["verbose"])

    if not outputs.emit(render):
        click.echo(render("text"), nl=False)
    return status
