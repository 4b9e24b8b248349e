"""One case of one file up the ladder."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.ladder import Ladder
from pallas_fix.verify.verdict import CaseResult, StageResult


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(text))


def climb(
    ladder: Ladder,
    root: Path,
    text: str,
    case: str,
    target: str = "tpu7x",
    name: str = "mod.py",
    before: str | None = None,
) -> CaseResult:
    """One case of one file; the file before is the same unless given."""
    write(root, {name: text})
    text = dedent(text)
    [result] = ladder.check(
        root, root / name, text if before is None else before, text, [parse_case(case)], [target]
    )
    return result


def names(stages: tuple[StageResult, ...]) -> list[str]:
    return [f"{stage.stage}{'' if stage.ok else ' fails'}" for stage in stages]
