"""Which lines changed, as git tells: since the base of a branch, or in the index.

Lines count as Python counts them, also where a carriage return alone ends them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from pallas_fix import git
from pallas_fix.files import SourceError
from pallas_fix.pyproject import ConfigError
from pallas_fix.ranges import EVERY, Hunk, Lines

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_GIT = "git is needed for it, and there is none on PATH"


class Changes:
    """What changed since the merge base of HEAD and the revision `since`; None: what is staged.

    Uncommitted changes and new files count among what changed since a revision. `given` are
    the bytes to take in the place of what the disk holds, if it is standard input.
    """

    def __init__(self, since: str | None) -> None:
        self._since = since
        self._option = "--staged" if since is None else "--since"
        self._trees: dict[str, _Tree] = {}
        self._of_folder: dict[str, str | None] = {}

    def __str__(self) -> str:
        return self._option if self._since is None else f"{self._option} {self._since}"

    def concern(self, path: Path) -> bool:
        """False if no line of the file at `path` changed.

        True for a file in no work tree. Raises ConfigError where git cannot say what changed.
        """
        tree, name = self._place(path)
        return tree is None or tree.changed(name)

    def lines(self, path: Path, data: bytes) -> Lines:
        """The changed lines of the file at `path`, which is to hold `data`.

        Raises SourceError for a file in no work tree, and ConfigError as `concern` does.
        """
        tree, name = self._place(path)
        if tree is None:
            what = (
                f"is in no git work tree, so {self._option} cannot say what changed: leave it out"
            )
            raise SourceError(path, None, what)
        return tree.lines(name, data)

    def check(self, paths: Sequence[Path]) -> None:
        """Ask git at once for the work trees of `paths`. Raises ConfigError."""
        for path in paths:
            self.concern(path)

    def _place(self, path: Path) -> tuple[_Tree | None, str]:
        real = os.path.realpath(path)
        folder = real if os.path.isdir(real) else os.path.dirname(real)
        if folder not in self._of_folder:
            self._of_folder[folder] = git.work_tree(folder)
        top = self._of_folder[folder]
        if top is None:
            return None, real
        if top not in self._trees:
            self._trees[top] = _Tree(top, self._since, self._option)
        return self._trees[top], os.path.relpath(real, top)


class _Tree:
    """One work tree, of which git is asked once what changed."""

    def __init__(self, top: str, since: str | None, option: str) -> None:
        self._top = top
        self._since = since
        self._option = option
        self._index = git.index_in_use(top)

    def changed(self, name: str) -> bool:
        return name in self._changed or (self._since is not None and name not in self._tracked)

    def lines(self, name: str, data: bytes) -> Lines:
        blob = f"{self._base}:{name}"
        old = self._changed[name] if name in self._changed else self._blob(blob)
        if self._since is not None:
            return EVERY if old is None else self._new_lines(old, data)
        staged = self._blob(f":0:{name}")
        if staged is None:
            # Nothing is staged of a new file, and all of one whose merge is in conflict.
            return EVERY if name in self._tracked else Lines()
        content = self._content(staged)
        lines = EVERY if old is None else self._new_lines(old, content)
        return lines.carried(self._hunks(content, data))

    def _new_lines(self, old: str, data: bytes) -> Lines:
        hunks = self._hunks(self._content(old), data)
        return Lines(tuple((hunk.new, hunk.new_end - 1) for hunk in hunks))

    @cached_property
    def _base(self) -> str:
        """The commit, or the tree, with which files are compared."""
        head = self._ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if self._since is None:
            empty = ("hash-object", "-t", "tree", "--stdin")
            return _line(head if head.ok else self._ask(*empty))
        if not head.ok:
            raise self._error("HEAD is no commit yet")
        revision = self._since
        # An option is no revision, and an older git would take it for one of its own.
        found = None
        if revision and not revision.startswith("-"):
            found = self._ask("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        if found is None or not found.ok:
            raise self._error(
                f"no commit is called {revision!r}; fetch it first (git fetch origin BRANCH, or "
                "fetch-depth: 0 for actions/checkout)"
            )
        base = self._ask("merge-base", _line(found), "HEAD")
        if base.ok:
            return _line(base).partition("\n")[0]
        what = f"{revision!r} and HEAD have no commit in common"
        if _line(self._ask("rev-parse", "--is-shallow-repository")) == "true":
            what += (
                ", for this clone is shallow; fetch its whole history (git fetch --unshallow, or "
                "fetch-depth: 0 for actions/checkout)"
            )
        raise self._error(what)

    @cached_property
    def _changed(self) -> dict[str, str | None]:
        """The files that changed, each with what it was before, if it is not new.

        A renamed file is compared with the one that it was.
        """
        what = ["--cached"] if self._since is None else []
        arguments = ["-M", "-z", "--raw", "--no-abbrev", "--ignore-submodules=all", self._base]
        answer = self._ask("diff-index", *what, *arguments, "--")
        if not answer.ok:
            raise self._error(f"git cannot say what changed: {answer.warnings.strip()}")
        fields = iter(answer.text.split("\0"))
        found: dict[str, str | None] = {}
        for head in fields:
            if not head:
                continue
            _, _, before, _, status = head.split(" ")
            name = next(fields)
            if status[0] in "RC":
                name = next(fields)
            if status != "D" and not (status == "U" and name in found):
                found[name] = None if status[0] in "AUT" else before
        return found

    @cached_property
    def _tracked(self) -> frozenset[str]:
        return frozenset(self._ask("ls-files", "-z").text.split("\0"))

    def _blob(self, name: str) -> str | None:
        answer = self._ask("rev-parse", "--verify", "--quiet", name)
        return _line(answer) if answer.ok else None

    def _content(self, blob: str) -> bytes:
        answer = self._ask("cat-file", "blob", blob)
        if not answer.ok:
            raise self._error(f"git cannot give what a file was: {answer.warnings.strip()}")
        return answer.data

    def _hunks(self, before: bytes, after: bytes) -> list[Hunk]:
        """How two versions of a file differ, as git sees it."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="pallas-fix-") as folder:
            for name, data in (("before", before), ("after", after)):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(re.sub(rb"\r\n?", b"\n", data))
            words = "diff --no-index --unified=0 --text --no-color --no-ext-diff --no-textconv"
            answer = git.ask(folder, *words.split(), "--", "before", "after")
        if answer is None or answer.status > 1:
            raise self._error(_NO_GIT if answer is None else answer.warnings.strip())
        return list(_read(answer.data))

    def _ask(self, *arguments: str) -> git.Answer:
        answer = git.ask(self._top, *arguments, index=self._index)
        if answer is None:
            raise ConfigError(f"{self._option}: {_NO_GIT}")
        return answer

    def _error(self, what: str) -> ConfigError:
        return ConfigError(f"{self._option}: {self._top}: {what}")


def _line(answer: git.Answer) -> str:
    return answer.text.rstrip("\n")


def _read(diff: bytes) -> Iterator[Hunk]:
    """The hunks of a diff of one file, without the lines of context that they may have."""
    inside = False
    start = end = new = new_end = 0
    for line in diff.split(b"\n"):
        head = _HUNK.match(line)
        if inside and head is None and line[:1] == b"-":
            end += 1
        elif inside and head is None and line[:1] == b"+":
            new_end += 1
        elif line[:1] != b"\\":
            if end > start or new_end > new:
                yield Hunk(start, end, new, new_end)
            start, new = end + 1, new_end + 1
            if head is not None:
                # A range without lines is named by the line before it.
                start = int(head[1]) + (head[2] == b"0")
                new = int(head[3]) + (head[4] == b"0")
                inside = True
            end, new_end = start, new
