"""Rewrites that are deliberately wrong, or right: kernels with textual changes, and their verdicts.

`tests/mutations/<kernel>/` holds `before.py`, `after.py` (its right rewrite) and `mutations.toml`:
the case and the target, and for each mutation its name and the replacements in `after.py`, each of
which must be found. Run as a script it verifies them all and writes `docs/mutations.md`; with
`--check` it only says whether that page is still true.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.judge import judge
from pallas_fix.verify.ladder import Ladder, Limits
from pallas_fix.verify.verdict import Level, Stage, Verdict

ROOT = Path(__file__).parent.parent
MUTATIONS = ROOT / "tests" / "mutations"
PAGE = ROOT / "docs" / "mutations.md"


@dataclass(frozen=True)
class Mutation:
    """One rewrite of `folder/before.py`: its text, and whether it is right.

    One that `hangs` never ends on a chip.
    """

    folder: Path
    name: str
    right: bool
    hangs: bool
    case: str
    target: str
    text: str

    @property
    def kernel(self) -> str:
        return self.folder.name

    def verdict(self, ladder: Ladder) -> Verdict:
        """What the ladder says of the rewrite."""
        path = self.folder / "before.py"
        before = path.read_text(encoding="utf-8")
        cases = [parse_case(self.case)]
        results = ladder.check(self.folder, path, before, self.text, cases, [self.target])
        return judge((), results)


def all_mutations() -> Iterator[Mutation]:
    """Every mutation, those of a kernel together, the right ones first."""
    for folder in sorted(path.parent for path in MUTATIONS.glob("*/mutations.toml")):
        content = tomllib.loads((folder / "mutations.toml").read_text(encoding="utf-8"))
        after = (folder / "after.py").read_text(encoding="utf-8")
        for right in (True, False):
            for told in content["right" if right else "wrong"]:
                text = after
                for old, new in told.get("replace", []):
                    if old not in text:
                        raise ValueError(f"{folder.name}, {told['name']}: {old!r} is not there")
                    text = text.replace(old, new)
                yield Mutation(
                    folder=folder,
                    name=told["name"],
                    right=right,
                    hangs=told.get("hangs", False),
                    case=content["case"],
                    target=content["target"],
                    text=text,
                )


def seen(verdict: Verdict) -> str:
    """What a verdict rests on, in words that do not depend on the machine or on versions."""
    if verdict.level is not Level.REFUTED:
        return str(verdict.level)
    [case] = verdict.cases
    failed = next((stage for stage in case.after.stages if stage.ok is False), None)
    if failed is not None and failed.stage is Stage.RUN and failed.error == "Deadlock":
        return "it does not end"
    if failed is not None:
        return f"{failed.stage}: {failed.error}"
    if any(one.same is False and not one.close for one in case.compared):
        return "numbers"
    return f"hazard: {case.new_hazards[0].kind}"


def row(mutation: Mutation, verdict: Verdict) -> str:
    """The line of the table for one mutation."""
    cells = mutation.kernel, mutation.target, mutation.name, str(verdict.level), seen(verdict)
    return f"| {' | '.join(cells)} |"


def page(rows: Sequence[tuple[Mutation, Verdict]]) -> str:
    """The page with the table of all mutations."""
    lines = [
        "# Wrong rewrites, and what refutes them",
        "",
        "Each row is a rewrite of a kernel in `tests/mutations/`, taken up the ladder against the",
        "kernel before. Wrong ones must be refuted, right ones must not. The last column says what",
        "the verdict rests on: the stage that fails, other *numbers*, or a new *hazard*.",
        "`python tools/mutations.py` writes this page, on jax 0.12.0.1 without a TPU or GPU.",
        "",
    ]
    for right in (False, True):
        chosen = [(mutation, verdict) for mutation, verdict in rows if mutation.right is right]
        refuted = sum(verdict.level is Level.REFUTED for _, verdict in chosen)
        kind = "Right" if right else "Wrong"
        lines += [f"## {kind} rewrites: {refuted} of {len(chosen)} refuted", ""]
        lines += ["| kernel | target | rewrite | verdict | seen |", "|---|---|---|---|---|"]
        lines += [row(mutation, verdict) for mutation, verdict in chosen]
        lines.append("")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with `--check` compare it; 1 if it is not true any more."""
    with Ladder(Path(sys.executable), jobs=2, limits=Limits(wall=30)) as ladder:
        rows = [(mutation, mutation.verdict(ladder)) for mutation in all_mutations()]
    text = page(rows)
    if "--check" in arguments:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
