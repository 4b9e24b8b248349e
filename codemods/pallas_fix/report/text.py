"""The account that a person reads."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import click

from pallas_fix.files import SourceError
from pallas_fix.report.account import Account, Entry, FileAccount, State
from pallas_fix.report.cases import hazard_line, lines
from pallas_fix.report.printable import inert, printable
from pallas_fix.report.proof import evidence, outcome
from pallas_fix.report.statistics import table

_HUNK_COLOURS = {"-": "red", "+": "green", "@": "cyan"}


@dataclass(frozen=True)
class Look:
    """How the account is to look.

    `width` is that of the terminal, None where lines are not to be broken. `verbosity` is -1
    (what is left to do, and the summary), 0, or 1 (every stage). With `statistics` findings are
    counted, and not shown.
    """

    colour: bool = False
    width: int | None = None
    verbosity: int = 0
    statistics: bool = False


def document(account: Account) -> str:
    """All of the account as plain text, for a file."""
    return "".join(f"{line}\n" for line in text(account, Look(verbosity=1)))


def text(account: Account, look: Look) -> Iterator[str]:
    """The lines of the account; the last one says where the kernels ran."""
    yield from map(inert, _Writer(account, look).lines())


@dataclass(frozen=True)
class _Writer:
    account: Account
    look: Look

    def lines(self) -> Iterator[str]:
        for problem in self.account.problems:
            yield from self.problem(problem)
        for file in self.account.files:
            yield from self.file(file)
        if self.look.statistics:
            yield from table(self.account)
        yield from self.summary()

    def problem(self, problem: SourceError) -> Iterator[str]:
        place = printable(str(problem.path))
        place += f":{problem.line}" if problem.line else ""
        head = f"{self._styled(place, bold=True)}: {self._styled('error:', fg='red')} "
        yield from self._wrapped(head, printable(problem.message))
        if problem.detail and self.look.verbosity > 0:
            yield from (f"    {printable(line)}" for line in problem.detail.splitlines())

    def file(self, file: FileAccount) -> Iterator[str]:
        if file.problem:
            yield from self.problem(file.problem)
        for entry in () if self.look.statistics else file.located(self.account.written):
            done = entry.state is State.FIXED and self.account.written
            if not done or self.look.verbosity >= 0:
                yield from self.entry(file, entry)
        for hazard in file.hazards:
            if hazard.serious or self.look.verbosity >= 0:
                yield from self._wrapped("", hazard_line(hazard))
        for note in file.notes:
            yield from self._wrapped(
                f"{self._styled(printable(str(file.path)), bold=True)}: note: ",
                printable(note),
            )

    def entry(self, file: FileAccount, entry: Entry) -> Iterator[str]:
        finding = entry.finding
        span = finding.span
        place = self._styled(printable(f"{file.path}:{span.line}:{span.column + 1}"), bold=True)
        code = self._styled(finding.code, fg="yellow", bold=True)
        yield from self._wrapped(f"{place}: {code} [{entry.rule}] ", printable(finding.message))
        yield from self._outcome(entry)
        for note in finding.notes:
            yield from self._wrapped("    note: ", printable(note))
        if entry.case:
            yield "    to verify it, fill in and add this line:"
            yield f"        {printable(entry.case)}"
        for line in entry.preview.decode(file.source.encoding, "replace").split("\n"):
            if line:
                styled = self._styled(printable(line), fg=_HUNK_COLOURS.get(line[0]))
                yield f"    {styled}"
        if self.look.verbosity > 0:
            yield from self._proof(file, entry)
            yield from self._stages(entry)

    def _outcome(self, entry: Entry) -> Iterator[str]:
        verdict, reason = entry.verdict, entry.reason
        word, why = outcome(self.account, entry)
        colour = "green"
        if reason is not None:
            colour = "red" if reason.code == "refuted" else "yellow"
        yield from self._wrapped(f"    {self._styled(f'{word}:', fg=colour)} ", printable(why))
        if reason is not None:
            yield from self._wrapped("    way out: ", printable(reason.way_out))
        elif verdict and verdict.before_failed:
            yield from self._wrapped("    before: ", printable(verdict.before_failed))

    def _proof(self, file: FileAccount, entry: Entry) -> Iterator[str]:
        """What the verdict rests on, and the command that shows it again."""
        for fact in evidence(self.account, file, entry):
            if fact.is_code:
                # A command is pasted, so that it stays whole.
                yield f"    {fact.word}:"
                yield f"        {printable(fact.text)}"
            else:
                yield from self._wrapped(f"    {fact.word}: ", printable(fact.text))

    def _stages(self, entry: Entry) -> Iterator[str]:
        """What the ladder saw, stage by stage."""
        for case in entry.verdict.cases if entry.verdict else ():
            yield from (f"    {line}" for line in lines(case, verbose=True))

    def summary(self) -> Iterator[str]:
        account = self.account
        if account.entries or account.problems:
            yield ""
        fixed, left = account.of(State.FIXED), account.of(State.SHOWN, State.NOT_FIXED)
        if fixed:
            files = sum(file.changed for file in account.files)
            levels = Counter(str(entry.verdict.level) for entry in fixed if entry.verdict)
            verb = "fixed" if account.written else "would be fixed"
            yield f"{len(fixed)} {verb} in {_count(files, 'file')} ({_list(levels)})"
        if left:
            reasons = Counter(entry.reason.code for entry in left if entry.reason)
            yield f"{len(left)} not fixed ({_list(reasons)})"
        problems = [*account.problems, *(file for file in account.files if file.problem)]
        if problems:
            yield f"{_count(len(problems), 'problem')}: see above"
        if not account.looked_at and not account.problems:
            yield "there is no Python file to look at"
        elif not fixed and not left and not account.interrupted:
            what = "what could be read" if problems else _count(account.looked_at, "file")
            yield f"nothing {'else ' if account.left_alone else ''}found in {what}"
        yield from map(printable, account.notes)
        if account.jax and self.look.verbosity > 0:
            yield f"for {printable(account.jax)}"
        yield printable(account.hardware)

    def _styled(self, words: str, *, fg: str | None = None, bold: bool | None = None) -> str:
        plain = not self.look.colour or (fg is None and bold is None)
        return words if plain else click.style(words, fg=fg, bold=bold)

    def _wrapped(self, head: str, words: str) -> Iterator[str]:
        """`head` and `words`, broken at the width of the terminal and indented below."""
        if self.look.width is None:
            yield head + words
            return
        start = len(click.unstyle(head))
        broken = textwrap.wrap(
            "x" * start + words,
            self.look.width,
            subsequent_indent=" " * (8 if head.startswith(" ") else 4),
            break_long_words=False,
            break_on_hyphens=False,
        )
        first, *rest = broken
        if len(first) < start:
            first, rest = "x" * start, broken
        yield head + first[start:]
        yield from rest


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items())
