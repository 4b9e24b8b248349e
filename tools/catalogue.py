"""The catalogue of changes: small runnable files for each, what the rules make of them, and jax.

python tools/catalogue.py                     show what differs from after.py
python tools/catalogue.py --write             write each after.py: read the diff before you commit
python tools/catalogue.py --run 0.8.2=PYTHON  what does not hold there, or up to the newest jax

`tests/catalogue/<id>/before.py` is one use of an old form; `after.py` is what all rules make of it
for the newest jax, and is missing where they leave it alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from pallas_fix.fixpoint import Outcome, fix_text
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Options
from pallas_fix.versions import NEWEST

CATALOGUE = Path(__file__).parent.parent / "tests" / "catalogue"
WITHOUT = frozenset({"GPU001", "IGN001"})
"""Rules about nothing that fails."""

RUN = """
import io, json, sys, warnings, contextlib
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
import casehelp
casehelp.STRICT_LOWER = sys.argv[2] == "strict"
for line in sys.stdin:
    path, text = json.loads(line)
    error = ""
    with contextlib.redirect_stdout(io.StringIO()):
        try: exec(compile(text, path, "exec"), {"__name__": "case"})
        except BaseException as e: error = f"{type(e).__name__}: {e}"[:300]
    print(json.dumps(error), flush=True)
"""


@dataclass(frozen=True)
class Entry:
    """One folder of the catalogue."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def before(self) -> str:
        return (self.folder / "before.py").read_text(encoding="utf-8")

    @property
    def after(self) -> str:
        """What the rules must make of it: `after.py`, or the file as it is."""
        file = self.folder / "after.py"
        return file.read_text(encoding="utf-8") if file.exists() else self.before

    def fix(
        self, text: str, versions: Sequence[Version] = (NEWEST,), closed: bool = True
    ) -> Outcome:
        """What all rules make of a text that must run on these versions."""
        options = Options(versions=tuple(versions), closed=closed)
        rules = [rule(options) for code, rule in all_rules().items() if code not in WITHOUT]
        return fix_text(text, str(self.folder / "before.py"), rules, lambda finding: True)


def entries() -> list[Entry]:
    """The folders, in the order of their names."""
    return [Entry(file.parent) for file in sorted(CATALOGUE.glob("*/before.py"))]


def run(python: Path | str, texts: Mapping[str, str], *, strict: bool) -> dict[str, str]:
    """What each text raises with an interpreter; empty where it runs.

    `strict` asks for the lowering too, which an old jax cannot always do without a device.
    """
    command = [str(python), "-c", RUN, str(CATALOGUE), "strict" if strict else "lenient"]
    given = "".join(f"{json.dumps([name, text])}\n" for name, text in texts.items())
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(texts):
        raise RuntimeError(f"{python} ended early: {done.stderr[-2000:]}")
    return dict(zip(texts, answers, strict=True))


def boundaries(version: Version, python: str) -> Iterator[str]:
    """What does not hold on an old jax, and on the range from it to the newest.

    A file that runs there must still run there after a repair for that jax alone. After a repair
    for the whole range it must run on both ends, or have kept a finding that says why not.
    """
    every = entries()
    alone = {entry.name: entry.fix(entry.before, (version,)).text for entry in every}
    spanning = {entry.name: entry.fix(entry.before, (version, NEWEST)) for entry in every}
    before = run(python, {entry.name: entry.before for entry in every}, strict=False)
    for_it = run(python, alone, strict=False)
    texts = {name: outcome.text for name, outcome in spanning.items()}
    low = run(python, texts, strict=False)
    high = run(sys.executable, texts, strict=True)
    for entry in every:
        name = entry.name
        if before[name]:
            continue
        if for_it[name]:
            yield f"{name}: repaired for jax {version} it fails there: {for_it[name]}"
        if low[name]:
            yield f"{name}: repaired for the range it fails on jax {version}: {low[name]}"
        if high[name] and not spanning[name].remaining:
            yield f"{name}: repaired for the range it fails on jax {NEWEST}: {high[name]}"


def main() -> int:
    """Show, write or run; the exit status is 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write each after.py")
    parser.add_argument("--run", action="append", default=[], metavar="VERSION=PYTHON")
    arguments = parser.parse_args()
    wrong = 0
    for word in arguments.run:
        version, _, python = word.partition("=")
        for line in boundaries(Version(version), python):
            print(f"{version}: {line}", flush=True)
            wrong += 1
    if arguments.run:
        return 1 if wrong else 0
    for entry in entries():
        outcome = entry.fix(entry.before)
        if outcome.bug:
            print(f"{entry.name}: {outcome.bug}")
        if outcome.bug or outcome.text == entry.after:
            continue
        wrong += 1
        print(f"{entry.name}: differs")
        if arguments.write:
            (entry.folder / "after.py").write_text(outcome.text, encoding="utf-8")
    return 1 if wrong and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
