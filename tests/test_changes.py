"""What changed, in real git repositories: branches, the index, renames, shallow clones, hooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from console import Console
from kernels import MXU
from pallas_fix.changes import Changes
from pallas_fix.files import SourceError
from pallas_fix.pyproject import ConfigError
from pallas_fix.ranges import EVERY, Hunk, Lines
from repository import Repository

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
TEN = "".join(f"line {number}\n" for number in range(1, 11))


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no repository of the user around."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """`k.py` of ten lines on `main`, and a branch that is checked out."""
    made = Repository(tmp_path / "repository")
    made.write("k.py", TEN)
    made.commit()
    made.git("switch", "-q", "-c", "branch")
    return made


def changed(text: str | bytes, changes: Changes, path: Path) -> list[int]:
    """The lines of the file at `path` that changed; it is to hold `text`."""
    if not changes.concern(path):
        return []
    data = text.encode() if isinstance(text, str) else text
    lines = changes.lines(path, data)
    return [number for number in range(1, 40) if lines.touch(number, number)]


def since(revision: str, path: Path) -> list[int]:
    return changed(path.read_bytes(), Changes(revision), path)


def staged(path: Path) -> list[int]:
    return changed(path.read_bytes(), Changes(None), path)


class TestSince:
    def test_what_the_branch_and_the_disk_changed(self, repository: Repository) -> None:
        path = repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        repository.commit()
        assert since("main", path) == [3]
        path = repository.write("k.py", path.read_text().replace("line 7\n", "seven\n7b\n"))
        assert since("main", path) == [3, 7, 8]
        repository.git("add", ".")
        assert since("main", path) == [3, 7, 8]

    def test_not_what_main_changed_in_the_meantime(self, repository: Repository) -> None:
        path = repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        repository.commit()
        repository.git("switch", "-q", "main")
        repository.write("k.py", "new\n" + TEN.replace("line 9\n", "nine\n"))
        repository.commit()
        repository.git("switch", "-q", "branch")
        assert since("main", path) == [3]
        repository.git("merge", "-q", "main")
        assert since("main", path) == [4]

    def test_a_file_that_did_not_change(self, repository: Repository) -> None:
        repository.write("other.py", "x\n")
        repository.commit()
        path = repository.folder / "k.py"
        assert not Changes("main").concern(path)
        os.utime(path, (1, 1))
        assert since("main", path) == []

    def test_a_new_file_is_new_from_end_to_end(self, repository: Repository) -> None:
        untracked = repository.write("new.py", "a\nb\n")
        ignored = repository.write("ignored.py", "a\nb\n")
        repository.write(".gitignore", "ignored.py\n")
        assert since("main", untracked)[:2] == [1, 2]
        assert since("main", ignored)[:2] == [1, 2]
        repository.commit()
        assert since("main", untracked)[:2] == [1, 2]

    @pytest.mark.parametrize(
        "name", ["other/renamed.py", "a b\té\n日.py", '"quoted"\\.py', "-x.py"]
    )
    def test_a_renamed_file_has_changed_where_it_differs(
        self, repository: Repository, name: str
    ) -> None:
        (repository.folder / "other").mkdir()
        repository.git("mv", "--", "k.py", name)
        path = repository.write(name, TEN.replace("line 3\n", "three\n"))
        repository.git("add", "--all")
        assert since("main", path) == [3]
        repository.commit()
        assert since("main", path) == [3]

    def test_deleted_lines_are_between_two_others(self, repository: Repository) -> None:
        path = repository.write("k.py", TEN.replace("line 4\nline 5\n", ""))
        repository.write("gone.py", "x\n")
        repository.commit()
        (repository.folder / "gone.py").unlink()
        lines = Changes("main").lines(path, path.read_bytes())
        assert not any(lines.touch(number, number) for number in range(1, 12))
        assert lines.touch(3, 4)
        assert not lines.touch(1, 3)
        assert not lines.touch(4, 9)

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_ends_of_lines(self, repository: Repository, end: str) -> None:
        path = repository.write("k.py", TEN.replace("\n", end).replace("line 5", "\x0cfive\u2028"))
        assert since("main", path) == [5]

    def test_settings_of_the_user_change_nothing(self, repository: Repository) -> None:
        for setting in (
            "color.ui=always",
            "diff.noprefix=true",
            "diff.external=false",
            "diff.interHunkContext=5",
            "diff.context=7",
            "diff.renames=false",
            "diff.suppressBlankEmpty=true",
            "core.quotePath=true",
        ):
            repository.git("config", *setting.split("="))
        repository.git("mv", "k.py", "é.py")
        path = repository.write("é.py", TEN.replace("line 3\n", "").replace("line 5\n", "five\n\n"))
        repository.commit()
        assert since("main", path) == [4, 5]

    def test_standard_input_is_compared_with_what_its_path_was(
        self, repository: Repository
    ) -> None:
        changes = Changes("main")
        given = TEN.replace("line 2\n", "two\n")
        path = repository.folder / "k.py"
        lines = changes.lines(path, given.encode())
        assert [number for number in range(1, 12) if lines.touch(number, number)] == [2]
        assert changes.lines(repository.folder / "none.py", b"x\n") == EVERY

    def test_a_link_is_what_it_points_to(self, repository: Repository, tmp_path: Path) -> None:
        repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        link = tmp_path / "link.py"
        link.symlink_to(repository.folder / "k.py")
        assert since("main", link) == [3]

    def test_a_linked_work_tree(self, repository: Repository, tmp_path: Path) -> None:
        repository.git("worktree", "add", "-q", "-b", "second", str(tmp_path / "second"), "main")
        path = tmp_path / "second/k.py"
        path.write_text(TEN.replace("line 8\n", "eight\n"))
        assert since("main", path) == [8]
        assert since("main", repository.folder / "k.py") == []

    def test_a_submodule_is_a_repository_of_its_own(
        self, repository: Repository, tmp_path: Path
    ) -> None:
        library = Repository(tmp_path / "library")
        library.write("sub.py", TEN)
        library.commit()
        add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
        repository.git(*add, str(library.folder), "library")
        repository.commit()
        repository.git("branch", "-f", "main")
        path = repository.write("library/sub.py", TEN.replace("line 6\n", "six\n"))
        repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        changes = Changes("main")
        assert changed(path.read_bytes(), changes, path) == [6]
        path = repository.folder / "k.py"
        assert changed(path.read_bytes(), changes, path) == [3]

    def test_several_repositories_under_one_path(
        self, repository: Repository, tmp_path: Path
    ) -> None:
        other = Repository(tmp_path / "other")
        other.write("k.py", TEN)
        other.commit()
        changes = Changes("main")
        for made, line in ((repository, 2), (other, 5)):
            path = made.write("k.py", TEN.replace(f"line {line}\n", "new\n"))
            assert changed(path.read_bytes(), changes, path) == [line]

    def test_git_is_left_as_it_was(self, repository: Repository) -> None:
        path = repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        (repository.folder / ".git/index.lock").touch()
        before = sorted((repository.folder / ".git").rglob("*"))
        index = (repository.folder / ".git/index").read_bytes()
        assert since("main", path) == [3]
        assert sorted((repository.folder / ".git").rglob("*")) == before
        assert (repository.folder / ".git/index").read_bytes() == index

    def test_a_file_in_no_repository(self, tmp_path: Path) -> None:
        (tmp_path / "k.py").write_text("x\n")
        changes = Changes("main")
        assert changes.concern(tmp_path / "k.py")
        with pytest.raises(SourceError, match="is in no git work tree, so --since cannot say"):
            changes.lines(tmp_path / "k.py", b"x\n")


class TestWhatGitCannotSay:
    def message(self, changes: Changes, folder: Path) -> str:
        with pytest.raises(ConfigError) as caught:
            changes.check([folder])
        message = str(caught.value)
        assert message.startswith(f"--since: {folder}: ")
        assert "\n" not in message
        return message

    @pytest.mark.parametrize("name", ["nothing", "", "--all", "main:k.py", "a b"])
    def test_an_unknown_revision(self, repository: Repository, name: str) -> None:
        message = self.message(Changes(name), repository.folder)
        assert f"no commit is called {name!r}; fetch it first" in message
        assert "fetch-depth: 0" in message

    def test_no_commit_yet(self, tmp_path: Path) -> None:
        made = Repository(tmp_path / "empty")
        assert "HEAD is no commit yet" in self.message(Changes("main"), made.folder)

    def test_no_merge_base(self, repository: Repository) -> None:
        repository.git("switch", "-q", "--orphan", "strange")
        repository.commit()
        message = self.message(Changes("main"), repository.folder)
        assert "'main' and HEAD have no commit in common" in message
        assert "shallow" not in message

    def test_a_shallow_clone(self, repository: Repository, tmp_path: Path) -> None:
        path = repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        for _ in range(3):
            repository.commit()
        repository.git("switch", "-q", "main")
        repository.commit()
        clone = tmp_path / "clone"
        origin = f"file://{repository.folder}"
        only = ("--depth", "1", "--no-single-branch", "-b", "branch")
        repository.git("clone", "-q", *only, origin, str(clone))
        message = self.message(Changes("origin/main"), clone)
        assert "no commit in common, for this clone is shallow" in message
        assert "fetch-depth: 0" in message
        subprocess.run(["git", "fetch", "-q", "--unshallow"], cwd=clone, check=True)
        path = clone / "k.py"
        assert since("origin/main", path) == [3]

    def test_no_git(self, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(repository.folder))
        with pytest.raises(ConfigError, match="--since: git is needed for it, and there is none"):
            Changes("main").check([repository.folder])


class TestStaged:
    def test_the_index_says_which_lines(self, repository: Repository) -> None:
        path = repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        assert staged(path) == []
        repository.git("add", "k.py")
        assert staged(path) == [3]
        repository.write("k.py", "zero\n" + path.read_text().replace("line 8\n", "eight\n"))
        assert staged(path) == [4]
        repository.write("k.py", path.read_text().replace("three\n", "3\n3\n"))
        assert staged(path) == [4, 5]

    def test_new_renamed_and_untracked_files(self, repository: Repository) -> None:
        new = repository.write("new.py", "a\nb\n")
        repository.git("mv", "k.py", "moved.py")
        moved = repository.write("moved.py", TEN.replace("line 3\n", "three\n"))
        repository.git("add", ".")
        untracked = repository.write("untracked.py", "a\n")
        assert staged(new)[:2] == [1, 2]
        assert staged(moved) == [3]
        assert staged(untracked) == []
        assert Changes(None).lines(untracked, b"a\n") == Lines()

    def test_before_the_first_commit(self, tmp_path: Path) -> None:
        made = Repository(tmp_path / "empty")
        path = made.write("k.py", "a\nb\n")
        made.git("add", ".")
        assert staged(path)[:2] == [1, 2]

    def test_a_merge_in_conflict(self, repository: Repository) -> None:
        path = repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        repository.commit()
        repository.git("switch", "-q", "main")
        repository.write("k.py", TEN.replace("line 3\n", "3\n"))
        repository.commit()
        with pytest.raises(subprocess.CalledProcessError):
            repository.git("merge", "branch")
        assert 3 in staged(path)
        assert 3 in since("branch", path)

    def test_standard_input(self, repository: Repository) -> None:
        path = repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        repository.git("add", ".")
        lines = Changes(None).lines(path, b"first\n" + path.read_bytes())
        assert [number for number in range(1, 12) if lines.touch(number, number)] == [4]

    @pytest.mark.parametrize("commit", [("--all",), ("--only", "k.py"), ("--include", "k.py")])
    def test_in_a_hook_the_index_is_that_of_the_commit(
        self, repository: Repository, tmp_path: Path, commit: tuple[str, ...]
    ) -> None:
        other = Repository(tmp_path / "other")
        other.write("other.py", TEN)
        other.commit()
        other.write("other.py", TEN.replace("line 9\n", "nine\n"))
        other.git("add", ".")
        code = (
            "import sys\nfrom pathlib import Path\nfrom pallas_fix.changes import Changes\n"
            f"for path in Path('k.py'), Path({str(other.folder)!r}, 'other.py'):\n"
            "    changes = Changes(None)\n"
            "    assert changes.concern(path)\n"
            "    lines = changes.lines(path, path.read_bytes())\n"
            f"    print(lines, file=open({str(tmp_path / 'said')!r}, 'a'))\n"
        )
        hook = repository.folder / ".git/hooks/pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!{PYTHON}\n{code}")
        hook.chmod(0o755)
        repository.write("k.py", TEN.replace("line 3\n", "three\n"))
        repository.git("commit", "-q", "-m", "x", *commit)
        assert (tmp_path / "said").read_text().splitlines() == [
            "Lines(ranges=((3, 3),))",
            "Lines(ranges=((9, 9),))",
        ]


KERNEL = MXU.partition("\n\n\ndef main")[0].replace("pltpu.ACC(0)", "pltpu.VMEM") + "\n"
FIRST = KERNEL.partition("\n\n\n")[2]
SECOND = FIRST.replace("kernel", "other").replace("def matmul", "def second")
BOTH = f"{KERNEL}\n\n{SECOND}"
SCRATCH = (ROOT / "tests/fixtures/TPU001/scratch_last/before.py").read_text()


def second_touched(text: str) -> str:
    """The line with the allocation of the second kernel changes."""
    first, second = text.split("def other")
    allocation = "pltpu.VMEM((64, 256), jnp.float32))"
    assert second.count(allocation) == 1
    return f"{first}def other{second.replace(allocation, f'{allocation}  # new')}"


class TestRuns:
    """The command line, on a branch that changed one of two broken kernels."""

    @pytest.fixture
    def console(
        self, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
    ) -> Console:
        return Console(capsysbinary, monkeypatch)

    @pytest.fixture
    def branch(self, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
        repository.git("switch", "-q", "main")
        repository.write("requirements.txt", "jax==0.12.0.1\n")
        repository.write("kernels/both.py", BOTH)
        repository.write("kernels/old.py", KERNEL)
        repository.commit()
        repository.git("switch", "-q", "-C", "branch")
        monkeypatch.chdir(repository.folder)
        return repository

    def found(self, console: Console, *words: str) -> list[tuple[str, str]]:
        """Path and function of what is found."""
        _, out, error = console.apply("--check", "--output", "json", *words)
        document = json.loads(out or error)
        return [
            (file["path"], finding["function"])
            for file in document["files"]
            for finding in file["findings"]
        ]

    def test_exactly_what_the_branch_changed(self, branch: Repository, console: Console) -> None:
        assert self.found(console, "--since", "main", ".") == []
        assert "no file has changed (--since main)" in console.apply("--since", "main", ".")[2]
        branch.git("mv", "kernels/both.py", "kernels/renamed.py")
        branch.write("kernels/renamed.py", "import os\n" + second_touched(BOTH))
        branch.write("kernels/new.py", KERNEL)
        branch.git("add", "--all")
        wanted = [("kernels/new.py", "kernel"), ("kernels/renamed.py", "other")]
        assert self.found(console, "--since", "main", ".") == wanted
        assert self.found(console, "--staged", ".") == wanted
        branch.commit()
        assert self.found(console, "--since", "main", ".") == wanted
        assert self.found(console, "--since", "HEAD~1", "kernels/renamed.py") == wanted[1:]
        assert self.found(console, "--staged", ".") == []
        assert len(self.found(console, ".")) == 4

    def test_only_that_is_fixed_and_the_rest_is_counted(
        self, branch: Repository, console: Console
    ) -> None:
        path = branch.write("kernels/both.py", second_touched(BOTH))
        status, patch, _ = console.apply("--diff", "--since", "main", ".")
        assert status == 1
        status, _, error = console.apply("--since", "main", ".")
        assert (status, "1 finding on unchanged lines: left alone" in error) == (0, True)
        first, second = path.read_text().split("def other")
        assert first == BOTH.split("def other")[0]
        assert "pltpu.ACC(0)" in second
        written = path.read_bytes()
        branch.write("kernels/both.py", second_touched(BOTH))
        subprocess.run(["git", "apply", "-"], input=patch, check=True)
        assert path.read_bytes() == written
        assert (branch.folder / "kernels/old.py").read_text() == KERNEL
        assert self.found(console, "--since", "main", ".") == []

    def test_an_edit_on_a_changed_line_is_enough(
        self, branch: Repository, console: Console
    ) -> None:
        """The finding is where the ref is allocated, its fix also changes where it is popped."""
        text = SCRATCH.replace("    kernel,", "    kernel,  # changed")
        branch.write("kernels/scratch.py", SCRATCH)
        branch.commit()
        branch.git("branch", "-f", "main")
        branch.write("kernels/scratch.py", text)
        assert self.found(console, "--since", "main", ".") == [("kernels/scratch.py", "matmul")]

    def test_what_is_gone_or_in_no_kernel_is_nothing(
        self, branch: Repository, console: Console
    ) -> None:
        (branch.folder / "kernels/old.py").unlink()
        branch.write("kernels/both.py", BOTH.replace("def second(x, y)", "def second(x,  y)"))
        assert self.found(console, "--since", "main", ".") == []

    def test_standard_input(self, branch: Repository, console: Console) -> None:
        words = ("--since", "main", "--stdin-filename", "kernels/both.py", "-")
        assert console.apply(*words, given=BOTH.encode())[:2] == (0, BOTH.encode())
        status, out, _ = console.apply(*words, given=second_touched(BOTH).encode())
        assert (status, out.count(b"pltpu.ACC(0)"), out.count(b"pltpu.VMEM")) == (0, 1, 1)

    def test_errors_are_one_line(self, branch: Repository, console: Console) -> None:
        status, out, error = console.apply("--since", "nothing", ".")
        assert (status, out, error.count("\n")) == (2, b"", 1)
        assert error.startswith("error: --since: ")
        status, _, error = console.apply("--since", "main", "--staged", ".")
        assert (status, "exclude each other" in error) == (2, True)

    def test_a_file_in_no_repository_is_a_problem(
        self, branch: Repository, console: Console, tmp_path: Path
    ) -> None:
        (tmp_path / "loose.py").write_text(KERNEL)
        branch.write("kernels/new.py", KERNEL)
        status, _, error = console.apply("--since", "main", ".", str(tmp_path / "loose.py"))
        assert status == 2
        assert "loose.py: error: is in no git work tree" in error
        assert "1 fixed in 1 file" in error


class TestLines:
    @pytest.mark.parametrize(
        ("hunk", "carried"),
        [
            (Hunk(1, 1, 1, 3), [(6, 7), (10, 9)]),
            (Hunk(1, 3, 1, 1), [(2, 3), (6, 5)]),
            (Hunk(5, 6, 5, 9), [(4, 4), (5, 8), (11, 10)]),
            (Hunk(5, 6, 5, 5), [(4, 4), (5, 4), (7, 6)]),
            (Hunk(9, 10, 9, 10), [(4, 5), (8, 7)]),
            (Hunk(6, 8, 6, 7), [(4, 5), (7, 6)]),
        ],
    )
    def test_they_are_carried_to_another_text(
        self, hunk: Hunk, carried: list[tuple[int, int]]
    ) -> None:
        lines = Lines(((4, 5), (8, 7)))
        assert list(lines.carried([hunk]).ranges) == carried

    def test_all_that_is_new_is_carried_too(self) -> None:
        lines = Lines(((4, 5),)).carried([Hunk(8, 9, 8, 10)], all_new=True)
        assert lines.ranges == ((4, 5), (8, 9))

    def test_every_line_stays_every_line(self) -> None:
        lines = EVERY.carried([Hunk(3, 3, 3, 9), Hunk(5, 6, 11, 11)])
        assert all(lines.touch(number, number) for number in range(1, 100))
