"""`pallas-fix verify`: the ladder alone, on a case of one file as it stands, or of two files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pallas_fix.config import Config
from pallas_fix.files import Source
from pallas_fix.pyproject import ConfigError
from pallas_fix.verification import Climber
from pallas_fix.verify.cases import Case, CaseError, parse_case
from pallas_fix.verify.judge import judge
from pallas_fix.verify.verdict import CaseResult, Level, Stage, Verdict


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


def climb(
    case: Case, path: Path, config: Config, ladder: Climber, other: Path | None = None
) -> list[CaseResult]:
    """The stages of the case on each of its targets, and of `other` in the place of the file.

    Raises SourceError.
    """
    from pallas_fix.targets import default_targets

    source = Source.read(path)
    after = source.text if other is None else Source.read(other).text
    targets = case.targets or config.targets or default_targets(source.text) or ("v6e",)
    real = Path(os.path.realpath(path))
    root = config.root if real.is_relative_to(config.root) else real.parent
    return ladder.check(root, path, source.text, after, [replace(case, targets=())], targets)


def status(results: Sequence[CaseResult], until: Stage, asked: bool) -> int:
    """1 where a stage failed or a hazard was seen, 2 where a stage was not tried, else 0.

    All stages up to `until` are needed; numbers only where the user `asked` for them.
    """
    stages = list(Stage)
    needed = stages[: stages.index(until) + 1]
    if until is Stage.DEVICE and not asked:
        del needed[-2:]
    sides = [result.after for result in results]
    if any(stage.ok is False for side in sides for stage in side.stages):
        return 1
    if any(hazard.serious for side in sides for hazard in side.hazards):
        return 1
    passed = [{stage.stage for stage in side.stages if stage.ok} for side in sides]
    return 0 if passed and all(done.issuperset(needed) for done in passed) else 2


def verdicts(results: Sequence[CaseResult], device: bool) -> list[Verdict]:
    """What is known of two files: `equal`, `refuted` where they differ, or less."""
    return [judge((), [result], device=device) for result in results]


def compared_status(found: Sequence[Verdict]) -> int:
    """0 where every verdict is `equal`, 1 where one is `refuted`, else 2."""
    levels = {verdict.level for verdict in found}
    if Level.REFUTED in levels:
        return 1
    return 0 if levels == {Level.EQUAL} else 2
