"""The commands of a run: run on the project as it was found, and again for each changed file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pallas_fix.targets import Target, default_targets, find_target
from pallas_fix.verify.command import Command, Ran, Setup, run
from pallas_fix.verify.recorded import Recorded, merged
from pallas_fix.verify.tree import copy_tree
from pallas_fix.verify.verdict import CaseResult, Side, Stage, StageResult


class Commands:
    """Commands in copies of one project; each copy is gone when its commands have run."""

    def __init__(
        self,
        commands: Sequence[Command],
        setup: Setup,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Without targets in `setup` the words in the files of the project tell them."""
        self._commands = commands
        self._setup = setup
        self._say = say
        self._texts: dict[Path, bytes] = {}
        self._recorded: list[Recorded] = []
        self._first: list[Ran] | None = None
        self.missing = 0
        """How many files of the project are too large or too many to be copied."""

    @property
    def base(self) -> Path:
        """The folder that is copied."""
        return self._setup.origin

    @property
    def recorded(self) -> list[Recorded]:
        """The cases of all launches that were seen so far."""
        return self._recorded

    def first(self) -> list[Ran]:
        """How the commands end in the project as it is; they run once. Raises ConfigError."""
        if self._first is None:
            self._first = self._run({})
        return self._first

    def check(self, path: Path, content: bytes) -> list[CaseResult]:
        """What each command says of a file (relative to the project) that is to be `content`.

        The files that were decided before are as they were decided. Raises ConfigError.
        """
        before = self.first()
        after = self._run(self._texts | {path: content})
        target = self._setup.targets[0].name
        return [
            CaseResult(f"$ {old.command}", target, _side(old, path), _side(new, path, old))
            for old, new in zip(before, after, strict=True)
        ]

    def decided(self, path: Path, content: bytes) -> None:
        """From now on the file at `path`, relative to the project, is `content`."""
        self._texts[path] = content

    def _run(self, texts: dict[Path, bytes]) -> list[Ran]:
        ran = []
        for command in self._commands:
            with self._tree(texts) as tree:
                ran.append(run(command, self._setup, tree, self._say))
        self._recorded = merged(
            [*self._recorded, *(one for each in ran for one in each.told.recorded)]
        )
        return ran

    @contextmanager
    def _tree(self, texts: dict[Path, bytes]) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="pallas-fix-")).resolve()
        try:
            tree = folder / self._setup.origin.name
            copied = copy_tree(self._setup.origin, tree, texts)
            self.missing = copied.missing
            if not self._setup.targets:
                targets = targets_of(tree / path for path in copied.python)
                self._setup = replace(self._setup, targets=targets)
            yield tree
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def commands_of(
    texts: Sequence[str],
    root: Path,
    python: Path,
    targets: Sequence[str],
    say: Callable[[str], None],
    option: str = "--run",
) -> Commands:
    """Commands for the project at `root`, as they are meant in the current folder.

    What is copied is the project, or the current folder if that holds it. Raises ConfigError.
    """
    commands = [Command.parse(text, python, option) for text in texts]
    here = Path(os.path.realpath(os.curdir))
    base = here if root.is_relative_to(here) else root
    folder = here.relative_to(base) if here.is_relative_to(base) else Path()
    return Commands(commands, Setup(python, base, folder, one_of_each(targets)), say)


def targets_of(files: Iterator[Path]) -> tuple[Target, ...]:
    """The targets of a project whose user named none: at most one TPU and one GPU."""
    names: set[str] = set()
    for file in files:
        data = file.read_bytes()
        if b"pallas" in data:
            names.update(default_targets(data.decode(errors="replace")))
    return one_of_each(sorted(names, key=_PREFERRED.index)) or (find_target("v6e"),)


def one_of_each(names: Sequence[str]) -> tuple[Target, ...]:
    """The first TPU and the first GPU among these targets."""
    platforms: dict[str, Target] = {}
    for target in map(find_target, names):
        platforms.setdefault(target.platform, target)
    return tuple(platforms.values())


_PREFERRED = ("tpu7x", "v6e", "b200", "h100", "a100")
"""The targets that words ask for; the first of a platform is taken."""


def summary(ran: Ran) -> str:
    """One line on how a command ended, and what it launched."""
    told = ran.told
    launches = count(told.launches, "launch", "launches")
    if not told.launches:
        seen = "it launched no kernel"
    else:
        seen = f"{launches} of {count(len(told.kernels), 'kernel')} recorded"
    if told.refused:
        seen += f", {told.refused.total()} of them as no case"
    ended = f"{ran.error} ({ran.said})" if ran.error and ran.said else ran.error or ran.said
    return f"$ {ran.command}: {ended or 'exit status 0'}; {seen}"


def reasons(ran: Ran) -> str:
    """One line on the launches that no case can say, and why; empty where there are none."""
    refused = ran.told.refused
    if not refused:
        return ""
    told = [reason for reason, _ in refused.most_common(_MOST_REASONS)]
    told += ["..."] if len(refused) > _MOST_REASONS else []
    launches = count(refused.total(), "launch", "launches")
    return f"no case can be written for {launches}: {'; '.join(told)}"


_MOST_REASONS = 3


def count(number: int, word: str, words: str = "") -> str:
    """`1 case`, `2 cases`."""
    return f"{number} {word if number == 1 else words or f'{word}s'}"


def _side(ran: Ran, path: Path, before: Ran | None = None) -> Side:
    """What a command says of the file at `path`, with the file as it is or, after `before`, fixed.

    The hazards are those in the file, and those elsewhere that were not there before.
    """
    stage = StageResult(Stage.RUN, not ran.error, round(ran.seconds, 3), ran.error, ran.said)
    hazards = ran.told.hazards
    if before is not None:
        known = {(hazard.kind, hazard.where) for hazard in before.told.hazards}
        hazards = [
            hazard
            for hazard in hazards
            if hazard.where.startswith(f"{path}:")
            or not (before.error or (hazard.kind, hazard.where) in known)
        ]
    return Side(
        stages=(stage,),
        entered=frozenset(ran.told.entered.get(str(path), ())),
        ran_on=tuple(ran.told.ran_on),
        hazards=tuple(hazards),
    )
