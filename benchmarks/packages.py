"""Old releases from PyPI against the newest jax: what fails in them before and after the rules.

python benchmarks/packages.py ejkernel==0.0.3 tokamax==0.0.6     downloads them, and counts
python benchmarks/packages.py path/to/folder -v                  a folder; names what is left

A use fails where the installed jax does not have the name, or its signature does not take the
call. That is asked of jax itself (in a process of its own), not of the tables of the rules. No
code of a package is run.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pallas_fix.facts import Facts
from pallas_fix.files import Source, SourceError
from pallas_fix.fixpoint import fix_text
from pallas_fix.rules import all_rules
from pallas_fix.rules.base import Finding

WITHOUT = frozenset({"GPU001", "IGN001"})
"""Rules about nothing that fails."""


@dataclass(frozen=True, order=True)
class Use:
    """A name of jax that a file uses, and how it is called there, if it is."""

    line: int
    name: str
    called: tuple[int, tuple[str, ...]] | None = None


@dataclass
class Count:
    """What was counted in one package."""

    files: int = 0
    changed: int = 0
    before: int = 0
    after: int = 0
    explained: int = 0
    broken: int = 0
    lines: int = 0


def uses(facts: Facts) -> Iterator[Use]:
    """The names of jax that a module reaches through its imports, but for those in shims."""
    names = facts.names
    for node in ast.walk(facts.tree):
        if isinstance(node, ast.ImportFrom) and not node.level and _of_jax(node.module or ""):
            if not facts.is_guarded(facts.span(node)):
                for alias in node.names:
                    if alias.name != "*":
                        yield Use(alias.lineno, f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import) and not facts.is_guarded(facts.span(node)):
            yield from (Use(node.lineno, a.name) for a in node.names if _of_jax(a.name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            path = names.path(node)
            parent = names.parent[node]
            if path is None or not _of_jax(path) or isinstance(parent, ast.Attribute):
                continue
            if not facts.is_guarded(facts.span(node)):
                yield Use(node.end_lineno or node.lineno, path)
        elif isinstance(node, ast.Call) and not facts.is_guarded(facts.span(node)):
            yield from _call(facts, node)


def _call(facts: Facts, node: ast.Call) -> Iterator[Use]:
    path = facts.names.path(node.func)
    starred = any(isinstance(a, ast.Starred) for a in node.args)
    if path is None or not _of_jax(path) or starred or any(k.arg is None for k in node.keywords):
        return
    keywords = tuple(k.arg for k in node.keywords if k.arg)
    yield Use(node.lineno, path, (len(node.args), keywords))


def _of_jax(path: str) -> bool:
    return path.partition(".")[0] == "jax" and not path.startswith("jax._src")


PROBE = """
import enum, importlib, inspect, json, sys, warnings
warnings.simplefilter("ignore")
import jax
def find(path):
    parts = path.split(".")
    found = jax
    for n, part in enumerate(parts[1:], 2):
        if inspect.ismodule(found):
            try: importlib.import_module(".".join(parts[:n]))
            except ImportError: pass
        try: found = getattr(found, part)
        except AttributeError:
            # An attribute of an object that is no module or class is not ours to know.
            if inspect.ismodule(found) or inspect.isclass(found): raise
            return None
    return found
def works(path, called):
    try:
        found = find(path)
        if called and found is not None and not isinstance(found, enum.Enum):
            try: signature = inspect.signature(found)
            except (TypeError, ValueError): return True
            signature.bind(*range(called[0]), **dict.fromkeys(called[1]))
    except (AttributeError, ImportError, TypeError):
        return False
    return True
for line in sys.stdin:
    print(json.dumps([works(*asked) for asked in json.loads(line)]), flush=True)
"""


class Oracle:
    """Asks the installed jax whether a use works; remembers what it said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._known: dict[tuple[str, object], bool] = {}

    def failing(self, asked: Iterable[Use]) -> list[Use]:
        """Those of the uses that fail; of a name that is gone, not also its calls."""
        wanted = list(asked)
        new = list({(u.name, u.called): u for u in wanted if (u.name, u.called) not in self._known})
        if new:
            self._known |= dict(zip(new, self._answers(new), strict=True))
        failing = [use for use in wanted if not self._known[use.name, use.called]]
        gone = {use.name for use in failing if use.called is None}
        return [use for use in failing if use.called is None or use.name not in gone]

    def _answers(self, asked: Sequence[object]) -> Sequence[bool]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        answers: list[bool] = json.loads(self._process.stdout.readline())
        return answers


def look(file: Path, oracle: Oracle, count: Count) -> Iterator[str]:
    """Count one file; yield a line for each use that still fails, or for what broke."""
    try:
        source = Source.read(file)
        facts = Facts.parse(source.text, str(file))
    except (SourceError, SyntaxError, ValueError, RecursionError):
        return
    count.files += 1
    rules = [rule() for code, rule in all_rules().items() if code not in WITHOUT]
    before = oracle.failing(uses(facts))
    outcome = fix_text(source.text, str(file), rules, lambda finding: True)
    count.before += len(before)
    if outcome.bug or outcome.unfit:
        count.broken += 1
        yield f"{file}: {outcome.bug or outcome.unfit}"
    after = oracle.failing(uses(Facts.parse(outcome.text, str(file))))
    count.after += len(after)
    if outcome.text != source.text:
        count.changed += 1
        old = set(source.text.splitlines())
        count.lines += sum(line not in old for line in outcome.text.splitlines())
    for use in after:
        why = _why(use, outcome.remaining)
        count.explained += bool(why)
        called = f" called with {use.called}" if use.called else ""
        yield f"{file}:{use.line}: {use.name}{called}: {why or 'NOT EXPLAINED'}"


def _why(use: Use, remaining: Sequence[Finding]) -> str:
    for finding in remaining:
        if finding.span.line <= use.line <= finding.span.end_line:
            return f"{finding.code} {finding.reason.code if finding.reason else 'not made'}"
    return ""


def fetch(requirement: str, folder: Path) -> Path:
    """Download one release, and unpack it."""
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    download += ["--ignore-requires-python", "--only-binary", ":all:", "--dest", str(folder)]
    done = subprocess.run([*download, requirement], check=False)
    if done.returncode:
        sys.exit(f"{requirement} cannot be downloaded (is pip installed here?)")
    for archive in list(folder.iterdir()):
        if archive.suffix in (".whl", ".zip"):
            with zipfile.ZipFile(archive) as zipped:
                zipped.extractall(folder / "src")
        elif archive.name.endswith(".tar.gz"):
            with tarfile.open(archive) as opened:
                opened.extractall(folder / "src", filter="data")
    return folder / "src"


def main() -> None:
    """Count each of the packages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="+", metavar="NAME==VERSION|FOLDER")
    parser.add_argument("-v", "--verbose", action="store_true", help="name what is left")
    arguments = parser.parse_args()
    print(f"{'package':32} files  failing  left  explained  changed files/lines  broken")
    command = [sys.executable, "-c", PROBE]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        oracle = Oracle(process)
        for package in arguments.packages:
            with tempfile.TemporaryDirectory() as folder:
                root = Path(package) if Path(package).is_dir() else fetch(package, Path(folder))
                told = report(package, root, oracle)
            if arguments.verbose:
                print("".join(f"  {line}\n" for line in told), end="", flush=True)
        if process.stdin is not None:
            process.stdin.close()


def report(package: str, root: Path, oracle: Oracle) -> list[str]:
    """Print the line of one package; the lines that tell what is left in it."""
    count = Count()
    told: list[str] = []
    for file in sorted(root.rglob("*.py")):
        if b"pallas" in file.read_bytes():
            told += look(file, oracle, count)
    print(
        f"{package:32} {count.files:>5}  {count.before:>7}  {count.after:>4}  "
        f"{count.explained:>9}  {count.changed:>8} / {count.lines:<8}  {count.broken:>6}",
        flush=True,
    )
    return told


if __name__ == "__main__":
    main()
