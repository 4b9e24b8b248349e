"""The first half of a run: read files, and find what the rules make of them.

Most files are healthy: those without a trigger word are read and no more.
"""

from __future__ import annotations

import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_fix.files import Source, SourceError
from pallas_fix.ranges import EVERY, Lines
from pallas_fix.rules.base import Finding, Options, Reason, Rule

if TYPE_CHECKING:
    from pallas_fix.fixpoint import Outcome
    from pallas_fix.sieve import Key, Sieve

FEW = 8
"""Up to so many files with a trigger word are read in this process: more processes cost more."""


@dataclass(frozen=True)
class Task:
    """One file, and the rules that are to look at it.

    `no_fix` gives, for some of the rules, the reason why none of their fixes is wanted. Only
    findings on `lines` count, and of those that are `known` only what is more than their number.
    """

    source: Source
    rules: tuple[type[Rule], ...]
    options: Options
    no_fix: Mapping[str, Reason] = field(default_factory=dict)
    lines: Lines = EVERY
    known: Mapping[Key, int] = field(default_factory=dict)

    def fixed(self, accept: Callable[[Finding], bool], sieve: Sieve | None = None) -> Outcome:
        """`fix_text` on the source, heeding its comments. Raises SourceError."""
        from pallas_fix.comments import heeding
        from pallas_fix.fixpoint import fix_text

        path = self.source.path
        sieve = sieve or self.sieve()
        heeded = [heeding(rule(self.options), self.no_fix.get(rule.code)) for rule in self.rules]
        rules = [sieve.through(rule) for rule in heeded]
        try:
            return fix_text(self.source.text, str(path), rules, accept)
        except SyntaxError as error:
            version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
            what = (
                f"is no {version} ({error.msg}): correct it, exclude it, or run pallas-fix "
                "with the Python that it is for"
            )
            raise SourceError(path, error.lineno, what) from None
        except (RecursionError, MemoryError):
            what = "is nested too deeply to be read: exclude it"
            raise SourceError(path, None, what) from None
        except Exception as error:
            what = f"internal error ({type(error).__name__}), left alone; please report it"
            raise SourceError(path, None, what, traceback.format_exc()) from error

    def sieve(self) -> Sieve:
        """A sieve that only lets through what counts."""
        from pallas_fix.sieve import Sieve

        return Sieve(self.source.text, self.lines, self.known)

    def wrong_comments(self) -> Iterator[SourceError]:
        """What the comments of the file say that cannot be followed."""
        from pallas_fix.comments import wrong
        from pallas_fix.rules import all_rules

        for line, what in wrong(self.source.text, all_rules()):
            yield SourceError(self.source.path, line, what)


@dataclass(frozen=True)
class Examined:
    """What the rules make of one file if every fix is made; `outcome` is None if none could.

    `problems` are those of its comments, and of rules, which `task` then has no more. `found` and
    `unchanged` are those of the sieve.
    """

    task: Task
    outcome: Outcome | None
    problems: tuple[SourceError, ...] = ()
    found: Mapping[Key, int] = field(default_factory=dict)
    unchanged: int = 0

    @property
    def empty(self) -> bool:
        """True where nothing was found."""
        return self.outcome is None or not (self.outcome.applied or self.outcome.remaining)


def trigger_words(rules: Iterable[type[Rule]]) -> tuple[bytes, ...]:
    """The words one of which a file must hold, without those that hold another one."""
    words = {word for rule in rules for word in rule.triggers}
    shortest = [word for word in words if not any(w != word and w in word for w in words)]
    return tuple(word.encode() for word in sorted(shortest))


def candidate(
    path: Path, read: Callable[[Path], bytes], words: Sequence[bytes]
) -> Source | SourceError | None:
    """The source at `path` if it holds one of the words; an error if it cannot be read."""
    try:
        data = read(path)
        # Without one of these in an import no name of the file can be one of jax.
        named = b"jax" in data or b"pallas" in data
        if not named or not any(word in data for word in words):
            return None
        from pallas_fix.comments import skips_file

        return None if skips_file(data) else Source(path, data)
    except SourceError as error:
        return error


def examine(task: Task) -> Examined:
    """What the rules make of one file; a rule with a bug is left out, and the rest goes on."""
    examined = _examine(task)
    return replace(examined, problems=(*task.wrong_comments(), *examined.problems))


def _examine(task: Task) -> Examined:
    sieve = task.sieve()
    try:
        outcome = task.fixed(lambda finding: True, sieve)
    except SourceError as error:
        return Examined(task, None, (error,))
    if outcome.unfit:
        reason = Reason(
            "file-not-editable",
            outcome.unfit,
            "change what stands there and run again, or repair it by hand",
        )
        unfit = {rule.code: reason for rule in task.rules}
        return _examine(replace(task, no_fix={**unfit, **task.no_fix}))
    if not outcome.bug:
        return Examined(task, outcome, (), sieve.found, sieve.unchanged)
    problem = SourceError(
        task.source.path, None, f"internal error of a rule, please report it: {outcome.bug}"
    )
    codes = _CODES.match(outcome.bug)
    guilty = codes[0].split(", ") if codes else []
    others = tuple(rule for rule in task.rules if rule.code not in guilty)
    if not others or len(others) == len(task.rules):
        return Examined(task, None, (problem,))
    rest = _examine(replace(task, rules=others))
    return replace(rest, problems=(problem, *rest.problems))


_CODES = re.compile(r"[A-Z]+\d+(?:, [A-Z]+\d+)*")


def examine_all(tasks: Sequence[Task], jobs: int) -> Iterator[Examined]:
    """`examine` for each task, in order; with many tasks in several processes."""
    if jobs <= 1 or len(tasks) <= FEW:
        yield from map(examine, tasks)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(min(jobs, len(tasks)), initializer=_leave_interrupts) as pool:
        futures = [pool.submit(examine, task) for task in tasks]
        try:
            for task, future in zip(tasks, futures, strict=True):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    yield _alone(task)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _alone(task: Task) -> Examined:
    """One task again, in a process of its own: some other one may have broken the pool."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    with ProcessPoolExecutor(1) as pool:
        try:
            return pool.submit(examine, task).result()
        except BrokenProcessPool:
            what = "makes the parser crash; exclude it, and please report it"
            return Examined(task, None, (SourceError(task.source.path, None, what),))
