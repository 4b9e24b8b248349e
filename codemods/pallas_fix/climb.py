"""`pallas-fix verify`: the ladder alone, on one case of a file as it stands."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pallas_fix.config import Config
from pallas_fix.files import Source
from pallas_fix.pyproject import ConfigError
from pallas_fix.verification import Climber
from pallas_fix.verify.cases import Case, CaseError, parse_case
from pallas_fix.verify.verdict import CaseResult, Stage

_ANSWERS = {True: "ok", False: "failed", None: "not available"}


def read_case(text: str) -> tuple[Case, Path]:
    """The case in `text` and the file that holds its entry. Raises ConfigError."""
    try:
        case = parse_case(text)
    except CaseError as error:
        raise ConfigError(str(error)) from None
    if case.path is None:
        raise ConfigError(f"name the file of the entry: path/to/kernels.py:{text}")
    path = Path(case.path)
    if not os.path.isfile(path):
        raise ConfigError(f"case {text!r}: there is no file {path}")
    return replace(case, path=None), path


def climb(case: Case, path: Path, config: Config, ladder: Climber) -> list[CaseResult]:
    """The stages of the case on each of its targets. Raises SourceError."""
    from pallas_fix.targets import default_targets

    source = Source.read(path)
    targets = case.targets or config.targets or default_targets(source.text) or ("v6e",)
    real = Path(os.path.realpath(path))
    root = config.root if real.is_relative_to(config.root) else real.parent
    return ladder.check(root, path, source.text, source.text, [replace(case, targets=())], targets)


def lines(results: Sequence[CaseResult], verbose: bool) -> Iterator[str]:
    """What people read: one line a stage, and the whole error where one failed."""
    for result in results:
        tools = f" ({', '.join(result.tools)})" if result.tools else ""
        yield f"{result.case} @ {result.target}{tools}"
        for stage in result.after.stages:
            seconds = f"{stage.seconds:.1f} s" if stage.ok is not None else ""
            yield f"    {stage.stage.value:<8}{_ANSWERS[stage.ok]:<14}{seconds}".rstrip()
            if stage.ok:
                continue
            place = f" ({stage.where})" if stage.where else ""
            words = (f"{stage.error}: " if stage.error else "") + stage.message
            shown = words.strip().splitlines() if verbose else words.strip().splitlines()[:1]
            yield from (f"        {line}{place if n == 0 else ''}" for n, line in enumerate(shown))


def status(results: Sequence[CaseResult], until: Stage, asked: bool) -> int:
    """1 where a stage failed, 2 where one up to `until` was not tried, else 0.

    Unless the user `asked` for numbers, none are needed.
    """
    stages = list(Stage)
    needed = stages[: stages.index(until) + 1]
    if until is Stage.DEVICE and not asked:
        del needed[-2:]
    if any(stage.ok is False for result in results for stage in result.after.stages):
        return 1
    passed = [{stage.stage for stage in result.after.stages if stage.ok} for result in results]
    return 0 if passed and all(done.issuperset(needed) for done in passed) else 2
