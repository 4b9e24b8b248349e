"""git, asked questions that change nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """What git said: its exit status, its output, and its warnings."""

    status: int
    data: bytes
    warnings: str

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def text(self) -> str:
        """The output as the text of a name or a path."""
        return os.fsdecode(self.data)


def ask(folder: str, *arguments: str, index: str = "", given: bytes = b"") -> Answer | None:
    """What git says in `folder`; None where there is no git.

    The environment of a hook (`GIT_DIR` and others) speaks of one repository, so it is left out;
    `index` is the file of another index than the one of the repository. Hooks stay off
    (`fsmonitor`), so that a tree which another user owns may be looked at too, and no lock is
    taken.
    """
    import subprocess

    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    if index:
        environment["GIT_INDEX_FILE"] = index
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "safe.directory=*"]
    try:
        done = subprocess.run(
            [*command, "-c", "core.quotePath=false", *arguments],
            cwd=folder,
            env={**environment, "LC_ALL": "C"},
            capture_output=True,
            check=False,
            input=given,
        )
    except OSError:
        return None
    return Answer(done.returncode, done.stdout, os.fsdecode(done.stderr))


def work_tree(folder: str) -> str | None:
    """The top of the git work tree in which the resolved `folder` lies, if any."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def index_in_use(tree: str) -> str:
    """The index that the git around this process works on, if that is one of the work tree `tree`.

    `git commit FILE` and `git commit --all` make one for the commit, and name it to their hooks.
    Empty where there is none: then the index is the usual one.
    """
    named = os.environ.get("GIT_INDEX_FILE")
    if not named:
        return ""
    folder = os.environ.get("GIT_DIR")
    if folder is None:
        own = work_tree(os.path.realpath(os.curdir)) == tree
    else:
        answer = ask(tree, "rev-parse", "--absolute-git-dir")
        theirs = os.path.realpath(answer.text.rstrip("\n")) if answer and answer.ok else ""
        own = os.path.realpath(folder) == theirs
    return os.path.join(tree, named) if own else ""
