"""A command of the user, such as `pytest -q tests`, run in a copy of the project."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pallas_fix.dtypes import DTYPES
from pallas_fix.pyproject import ConfigError
from pallas_fix.targets import Target
from pallas_fix.verify import devices
from pallas_fix.verify.arguments import KEYS
from pallas_fix.verify.ends import End, Limits, explain
from pallas_fix.verify.environment import environment
from pallas_fix.verify.recorded import Told, read_journal
from pallas_fix.verify.watch import watch

CAPTURE = Path(__file__).parent / "worker" / "capture" / "path"
"""The folder whose `sitecustomize` begins the capture in every Python."""

SETTINGS = "PALLAS_FIX_CAPTURE"
"""The variable that names the settings of a capture to the processes of a command."""

LIMITS = Limits(wall=900, output=256 << 20)
"""What a command may use: a whole test suite takes its time."""

MOST_CRASHES = 16
"""Tests that end the process of pytest, after each of which it is started again."""

SHELL = "/bin/sh"

_NOT_FOUND = 127
"""The status of a shell that does not find a program (POSIX, "Exit Status for Commands")."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was given, and its words; it goes through a shell where it needs one."""

    text: str
    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, python: Path, option: str = "--run") -> Command:
        """Find its program. Raises ConfigError where there is none, in the name of `option`."""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise ConfigError(f"{option} {text!r}: {str(error).lower()}") from None
        if not words:
            raise ConfigError(f"{option}: the command is empty (example: 'pytest -q tests')")
        if _NEEDS_SHELL.search(_QUOTED.sub("", text)):
            return cls(text, (SHELL, "-c", text))
        program = _program(words[0], python)
        if program is None:
            raise ConfigError(f"{option} {text!r}: there is no program {words[0]!r}")
        return cls(text, (*program, *words[1:]))


_QUOTED = re.compile(r"'[^']*'|\\.")
_NEEDS_SHELL = re.compile(r"[|&;<>()$`*?~{}\n]|^\s*\w+=")


def _program(name: str, python: Path) -> tuple[str, ...] | None:
    """What starts a program; the programs of the interpreter's folder come before others."""
    if os.sep in name:
        return (name,) if os.access(name, os.X_OK) and os.path.isfile(name) else None
    own = python.parent / name
    if name in ("python", "python3", python.name):
        return (str(python),)
    if os.access(own, os.X_OK):
        return (str(own),)
    if name in ("pytest", "py.test"):
        return str(python), "-m", "pytest"
    found = shutil.which(name)
    return (found,) if found else None


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended.

    `error` is empty where its status was 0, else a word for why: `exit status 1`, `Timeout`.
    `said` is the last line that says something. `told` is what its processes told of launches.
    """

    command: str
    error: str
    said: str
    seconds: float
    told: Told = field(default_factory=Told)


@dataclass(frozen=True, slots=True)
class Setup:
    """Where commands run.

    `python` is the interpreter of the project, `origin` the project; `folder` the one, relative
    to it, in which the command is to run. `targets` are simulated where they are not there.
    """

    python: Path
    origin: Path
    folder: Path
    targets: tuple[Target, ...]
    limits: Limits = LIMITS

    @property
    def device(self) -> bool:
        """True if the chips of all targets seem to be there."""
        platforms = {target.platform for target in self.targets}
        return all(map(devices.likely, platforms))


def run(command: Command, setup: Setup, tree: Path, say: Callable[[str], None]) -> Ran:
    """Run a command in `tree`, a copy of the project of its own.

    Where a test ends the process of pytest, the command is run again for the tests that are left.
    Raises ConfigError where a shell does not find a program.
    """
    start = time.monotonic()
    crashes: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(
        prefix="run-", dir=tree.parent, ignore_cleanup_errors=True
    ) as folder:
        own, told = Path(folder), Told()
        while True:
            say(f"running {command.text}{f', after {told.tests[-1]}' if crashes else ''}")
            left = setup.limits.wall - round(time.monotonic() - start)
            limits = replace(setup.limits, wall=max(1, left))
            end = _run_once(command, setup, tree, own, told.tests, limits)
            told = read_journal(own / "journal", command.text)
            if not told.unfinished or end.reason:
                break
            crashes.append((told.unfinished, _judged(end, setup.limits, tree)[0]))
            if len(crashes) == MOST_CRASHES:
                break
    if end.code == _NOT_FOUND and command.words[0] == SHELL and not told.entered:
        raise ConfigError(f"{command.text!r}: {last_words(end.output, tree)}")
    error, said = _judged(end, setup.limits, tree)
    if crashes:
        test, error = crashes[0]
        rest = f" and {len(crashes) - 1} more" if len(crashes) > 1 else ""
        said = f"{test}{rest} ended the process; the others: {said}"
    return Ran(command.text, error, said, time.monotonic() - start, told)


def _run_once(
    command: Command, setup: Setup, tree: Path, own: Path, done: Sequence[str], limits: Limits
) -> End:
    device = setup.device
    settings = {
        "root": str(tree),
        "origin": str(setup.origin),
        "journal": str(own / "journal"),
        "targets": [] if device else [asdict(target) for target in setup.targets],
        "dtypes": {name: short for short, name in DTYPES.items()},
        "keys": {name: short for short, name in KEYS.items()},
        "done": list(done),
    }
    file = own / "settings.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    home = own / "home"
    home.mkdir(exist_ok=True)
    words = [inside(word, setup.origin, tree) for word in command.words]
    variables = _environment(setup, home, device) | {SETTINGS: str(file)}
    if device:
        limits = replace(limits, memory=-1)  # a driver of GPUs reserves more than there is
    return watch(words, tree / setup.folder, variables, limits, SETTINGS)


def _environment(setup: Setup, home: Path, device: bool) -> dict[str, str]:
    variables = environment(setup.targets[0], home, device)
    if device:
        variables["JAX_PLATFORMS"] += ",cpu"
    before = variables.get("PYTHONPATH")
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(CAPTURE), before]))
    path = variables.get("PATH", os.defpath)
    variables["PATH"] = os.pathsep.join([str(setup.python.parent), path])
    return variables


def inside(text: str, origin: Path, tree: Path) -> str:
    """`text` with the paths in the project as paths in its copy, where that has them."""

    def moved(match: re.Match[str]) -> str:
        copy = f"{tree}{match[1]}"
        return copy if os.path.lexists(copy.partition("::")[0]) else match[0]

    return re.sub(rf"(?<![\w./-]){re.escape(str(origin))}((?:/[^\s'\";:|&]*)?)", moved, text)


def _judged(end: End, limits: Limits, tree: Path) -> tuple[str, str]:
    """The error of an end, empty where it was a good one, and the line that says most."""
    if end.reason or end.code < 0:
        return explain(end, limits)
    said = last_words(end.output, tree)
    return (f"exit status {end.code}" if end.code else ""), said


_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_SUMMARY = re.compile(
    r"^=*\s*(\d+ (?:passed|failed|errors?|skipped|deselected|xfailed)\b.*?)\s*=*$"
)
_SECONDS = re.compile(r" in [\d.]+s(?: \([\d:]+\))?")
_LONGEST = 300


def last_words(output: str, tree: Path) -> str:
    """The line of an output that says most: the summary of pytest, else the last one, if any."""
    lines = [_ESCAPES.sub("", line).strip() for line in output.replace("\r", "\n").split("\n")]
    lines = [line for line in lines if line]
    summaries = [found[1] for line in lines if (found := _SUMMARY.match(line))]
    last = summaries[-1] if summaries else (lines or [""])[-1]
    return _SECONDS.sub("", last).replace(f"{tree}{os.sep}", "")[:_LONGEST]
