"""Where the reports of a run go: text to people on stderr, documents to stdout or to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pallas_fix.pyproject import ConfigError, nearest
from pallas_fix.report.formats import FORMATS

if TYPE_CHECKING:
    from pallas_fix.report.account import Account
    from pallas_fix.report.text import Look


@dataclass(frozen=True)
class Outputs:
    """The formats that were asked for, each with its file; None is where the format goes anyway."""

    wanted: tuple[tuple[str, Path | None], ...]

    @classmethod
    def parse(
        cls, words: Sequence[str], *, stdout_taken: bool, formats: Sequence[str] = FORMATS
    ) -> Outputs:
        """Read `--output FORMAT[=FILE]`, each one of `formats`. Raises ConfigError."""
        wanted = []
        for word in words:
            name, equals, file = word.partition("=")
            if name not in formats:
                hint = (
                    nearest(name, formats) or f"; it is {', '.join(formats[:-1])} or {formats[-1]}"
                )
                raise ConfigError(f"--output: no format is called {name!r}{hint}")
            if equals and not file:
                raise ConfigError(f"--output: {word!r} names no file after '='")
            if name != "text" and not file:
                if stdout_taken:
                    raise ConfigError(f"--output: stdout is taken here; write {name}=FILE")
                stdout_taken = True
            wanted.append((name, Path(file) if file else None))
        return cls(tuple(wanted))

    def emit(self, render: Callable[[str], str]) -> bool:
        """Write what `render` makes of each format; True if stdout got a document.

        Raises ConfigError where a file cannot be written.
        """
        for name, file in self.wanted:
            if file is not None:
                try:
                    file.write_text(render(name), encoding="utf-8")
                except OSError as error:
                    what = f"--output: {file} cannot be written: {error.strerror}"
                    raise ConfigError(what) from None
            elif name != "text":
                click.echo(render(name), nl=False)
        return any(file is None and name != "text" for name, file in self.wanted)

    def write(self, account: Account, look: Look, quiet: bool) -> None:
        """Write every report; the text on stderr comes last, unless `quiet`.

        Raises ConfigError where a file cannot be written.
        """
        self.emit(lambda name: _rendered(name, account))
        if not quiet:
            from pallas_fix.report.text import text

            for line in text(account, look):
                click.echo(line, err=True, color=look.colour)


def _rendered(name: str, account: Account) -> str:
    document: Callable[[Account], str] = import_module(f"pallas_fix.report.{name}").document
    return document(account)


def diff(account: Account) -> Iterator[bytes]:
    """What the run would write, as one diff that `git apply` takes."""
    from pallas_fix.report.diff import diff, name_in_diff

    for file in account.files:
        if file.changed:
            after = file.source.encode(file.after)
            yield diff(name_in_diff(file.path), file.source.data, after)


def result(account: Account, given: bytes) -> bytes:
    """What standard output gets for standard input: the text as it now is."""
    for file in account.files:
        return file.source.encode(file.after)
    return given
