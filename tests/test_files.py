"""Discovery, reading and writing, on real files."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from pallas_fix import files
from pallas_fix.discover import Exclude, discover
from pallas_fix.files import Source, SourceError, write


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")


def found(*paths: Path, excludes: tuple[Exclude, ...] = (), root: Path) -> list[str]:
    """What is discovered, relative to `root`; an error as `path: message`."""
    return [str(item).replace(f"{root}/", "") for item in discover(paths, excludes)]


@pytest.fixture(params=["walk", "git"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder, once without git and once as a work tree."""
    if request.param == "git":
        git(tmp_path, "init", "-q")
    return tmp_path


class TestDiscover:
    def test_python_files_sorted_and_no_others(self, tree: Path) -> None:
        touch(tree, "b.py", "a/z.pyi", "a/y.py", "README.md", "a/data.txt", "a-b.py")
        assert found(tree, root=tree) == ["a/y.py", "a/z.pyi", "a-b.py", "b.py"]

    def test_folders_that_are_never_entered(self, tree: Path) -> None:
        touch(tree, "k.py", ".venv/x.py", "env/lib/x.py", "lib/site-packages/p/x.py")
        touch(tree, "node_modules/n.py", "__pycache__/c.py", ".tox/t.py", ".nox/t.py", ".eggs/e.py")
        touch(tree, "env/pyvenv.cfg")
        assert found(tree, root=tree) == ["k.py"]

    def test_a_folder_named_by_hand_is_entered(self, tree: Path) -> None:
        touch(tree, ".venv/lib/site-packages/p/x.py", ".venv/lib/site-packages/p/.venv/y.py")
        touch(tree, ".venv/pyvenv.cfg")
        packages = tree / ".venv/lib/site-packages"
        assert found(packages, root=tree) == [".venv/lib/site-packages/p/x.py"]

    def test_a_file_named_by_hand_is_always_taken(self, tree: Path) -> None:
        touch(tree, "script", ".venv/x.py", "out/x.py")
        (tree / ".gitignore").write_text("out/\n")
        named = [tree / "script", tree / ".venv/x.py", tree / "out/x.py"]
        excludes = (Exclude(tree, ("*",)),)
        assert found(*named, excludes=excludes, root=tree) == [".venv/x.py", "out/x.py", "script"]

    def test_each_file_once(self, tree: Path) -> None:
        touch(tree, "a/x.py")
        (tree / "a/0_link.py").symlink_to("x.py")
        assert found(tree, tree / "a", tree / "a/x.py", root=tree) == ["a/x.py"]

    def test_exclude_patterns_are_those_of_gitignore(self, tree: Path) -> None:
        touch(tree, "a/x.py", "a/gen/x.py", "a/gen/keep/y.py", "gen/x.py", "x_test.py")
        excludes = (Exclude(tree, ("/gen/", "*_test.py", "a/**/y.py")),)
        assert found(tree, excludes=excludes, root=tree) == ["a/gen/x.py", "a/x.py"]

    def test_what_cannot_be_looked_at_is_a_line_and_the_rest_follows(self, tree: Path) -> None:
        touch(tree, "z.py")
        (tree / "loop.py").symlink_to("loop.py")
        (tree / "nothing.py").symlink_to("gone.py")
        (tree / "back").symlink_to(".")
        assert found(tree, tree / "missing.py", root=tree) == [
            "loop.py: Too many levels of symbolic links",
            "missing.py: no such file or folder",
            "nothing.py: is a symbolic link to nothing",
            "z.py",
        ]

    def test_a_folder_that_cannot_be_opened(self, tmp_path: Path) -> None:
        touch(tmp_path, "z.py")
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(tmp_path)
            for _ in range(20):
                os.mkdir("d" * 250)
                os.chdir("d" * 250)
            Path("deep.py").touch()
        finally:
            os.fchdir(here)
            os.close(here)
        *deep, last = found(tmp_path, root=tmp_path)
        assert last == "z.py"
        assert len(deep) == 1
        assert deep[0].endswith("folder cannot be read: File name too long")

    def test_a_link_into_packages_is_left_out(self, tree: Path) -> None:
        touch(tree, "k.py", ".venv/lib/site-packages/p/x.py")
        (tree / "alias.py").symlink_to(".venv/lib/site-packages/p/x.py")
        assert found(tree, root=tree) == ["k.py"]

    def test_a_named_pipe_is_no_source(self, tree: Path) -> None:
        os.mkfifo(tree / "pipe.py")
        with pytest.raises(SourceError, match=r"pipe\.py: is a named pipe"):
            Source.read(tree / "pipe.py")


class TestGit:
    def test_tracked_or_not_ignored(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q")
        touch(tmp_path, "tracked.py", "new.py", "out/made.py", "out/kept.py", "gone.py")
        git(tmp_path, "add", "tracked.py", "out/kept.py", "gone.py")
        (tmp_path / ".gitignore").write_text("out/\n")
        (tmp_path / "gone.py").unlink()
        assert found(tmp_path, root=tmp_path) == ["new.py", "out/kept.py", "tracked.py"]

    def test_a_folder_below_the_top(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q")
        touch(tmp_path, "a.py", "k e/b.py", "k e/*/c.py", "k ee/d.py")
        assert found(tmp_path / "k e", root=tmp_path) == ["k e/*/c.py", "k e/b.py"]

    def test_an_ignored_folder_named_by_hand(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q")
        touch(tmp_path, "out/a.py", "out/.venv/b.py")
        (tmp_path / ".gitignore").write_text("out/\n")
        assert found(tmp_path / "out", root=tmp_path) == ["out/a.py"]

    def test_names_outside_ascii(self, tmp_path: Path) -> None:
        git(tmp_path, "init", "-q")
        touch(tmp_path, 'é "quoted".py', "tab\there.py")
        assert found(tmp_path, root=tmp_path) == ["tab\there.py", 'é "quoted".py']

    def test_a_nested_repository_is_its_own(self, tmp_path: Path) -> None:
        outer, inner = tmp_path / "outer", tmp_path / "outer/inner"
        touch(outer, "a.py", "inner/b.py", "inner/out.py")
        (inner / ".gitignore").write_text("out.py\n")
        git(inner, "init", "-q")
        git(inner, "add", ".")
        git(inner, "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m")
        assert found(outer, root=outer) == ["a.py", "inner/b.py"]
        git(outer, "init", "-q")
        assert found(outer, root=outer) == ["a.py"]
        assert found(inner, root=outer) == ["inner/b.py"]

    def test_the_environment_of_a_hook_does_not_mislead(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        git(tmp_path, "init", "-q")
        touch(tmp_path, "a.py")
        monkeypatch.setenv("GIT_DIR", "/nowhere")
        monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
        assert found(tmp_path, root=tmp_path) == ["a.py"]

    def test_without_git_the_folder_is_walked(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        git(tmp_path, "init", "-q")
        touch(tmp_path, "a.py")
        monkeypatch.setenv("PATH", str(tmp_path))
        assert found(tmp_path, root=tmp_path) == ["a.py"]

    def test_a_broken_work_tree_is_walked_and_said(self, tmp_path: Path) -> None:
        touch(tmp_path, "a.py")
        (tmp_path / ".git").write_text("gitdir: /nowhere\n")
        problem, path = found(tmp_path, root=tmp_path)
        assert "git cannot list it (fatal: not a git repository" in problem
        assert path == "a.py"


class TestSource:
    @pytest.mark.parametrize(
        ("data", "text", "encoding", "bom"),
        [
            (b"x = 1", "x = 1", "utf-8", False),
            (b"", "", "utf-8", False),
            (b"\xef\xbb\xbfx = '\xc3\xa9'\r\n", "x = 'é'\r\n", "utf-8", True),
            (
                b"# coding: latin-1\nx = '\xe9'\n",
                "# coding: latin-1\nx = 'é'\n",
                "iso8859-1",
                False,
            ),
            (b"#!/bin/py\n# vim: set fileencoding=cp1252 :\n'\x80'", None, "cp1252", False),
            (b"# a\r# coding: latin-1\r'\xe9'\r", None, "iso8859-1", False),
            (b"x = 1\n# coding: latin-1\n", None, "utf-8", False),
            (
                b"# coding: euc-jp\nx = '\xc6\xfc'\n",
                "# coding: euc-jp\nx = '日'\n",
                "euc_jp",
                False,
            ),
            (b"a\r\nb\rc\n\x0cd\xe2\x80\xa8e", "a\r\nb\rc\n\fd\u2028e", "utf-8", False),
        ],
    )
    def test_decodes_as_python_does(
        self, data: bytes, text: str | None, encoding: str, bom: bool
    ) -> None:
        source = Source(Path("k.py"), data)
        assert (source.encoding, source.bom) == (encoding, bom)
        assert text is None or source.text == text
        assert source.encode(source.text) == data

    @pytest.mark.parametrize(
        ("data", "line", "message"),
        [
            (b"x\ny = '\xe9'\n", 2, "byte 0xe9 is not utf-8"),
            (b"\xe9", 1, "byte 0xe9 is not utf-8"),
            (b"x\r\ny\r\n\0", 3, "null byte"),
            (b"# coding: klingon\n", None, "unknown encoding: klingon"),
            (b"# coding: rot13\n", None, "no encoding of text"),
            (b"\xef\xbb\xbf# coding: latin-1\n", None, "remove one of them"),
            (b"# coding: utf-7\nx = '+AGE-'\n", None, "does not survive"),
        ],
    )
    def test_bytes_that_are_no_text(self, data: bytes, line: int | None, message: str) -> None:
        with pytest.raises(SourceError, match=message) as caught:
            Source(Path("k.py"), data)
        assert caught.value.line == line
        assert str(caught.value).startswith("k.py:")

    def test_too_large(self, tmp_path: Path) -> None:
        with open(tmp_path / "k.py", "wb") as file:
            file.truncate(files.MAX_BYTES + 1)
        with pytest.raises(SourceError, match=r"too large \(more than 8 MB\)"):
            Source.read(tmp_path / "k.py")

    def test_a_character_that_the_encoding_cannot_hold(self) -> None:
        source = Source(Path("k.py"), b"# coding: latin-1\n")
        with pytest.raises(SourceError, match="iso8859-1 cannot hold") as caught:
            source.encode("# coding: latin-1\n'日'\n")
        assert caught.value.line == 2


class TestWrite:
    def source(self, path: Path) -> Source:
        path.write_bytes(b"# coding: latin-1\r\nx = '\xe9'\r\n")
        return Source.read(path)

    def test_bytes_and_mode(self, tmp_path: Path) -> None:
        source = self.source(tmp_path / "k.py")
        source.path.chmod(0o750)
        assert write(source, source.text + "y = 2\r\n") == ""
        assert source.path.read_bytes() == b"# coding: latin-1\r\nx = '\xe9'\r\ny = 2\r\n"
        assert stat.S_IMODE(source.path.stat().st_mode) == 0o750
        assert [path.name for path in tmp_path.iterdir()] == ["k.py"]

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        self.source(tmp_path / "real.py")
        (tmp_path / "folder").mkdir()
        link = tmp_path / "folder/link.py"
        link.symlink_to("../real.py")
        write(Source.read(link), "y = 2\n")
        assert os.readlink(link) == "../real.py"
        assert (tmp_path / "real.py").read_text() == "y = 2\n"

    def test_hard_links_are_noted(self, tmp_path: Path) -> None:
        source = self.source(tmp_path / "k.py")
        os.link(source.path, tmp_path / "other.py")
        assert write(source, "y = 2\n") == "1 other hard link(s) to this file keep the old text"

    def test_a_file_that_changed_meanwhile_is_kept(self, tmp_path: Path) -> None:
        source = self.source(tmp_path / "k.py")
        source.path.write_text("mine = 1\n")
        with pytest.raises(SourceError, match="changed on disk"):
            write(source, "y = 2\n")
        assert source.path.read_text() == "mine = 1\n"
        assert [path.name for path in tmp_path.iterdir()] == ["k.py"]

    def test_a_file_that_vanished_is_not_made_again(self, tmp_path: Path) -> None:
        source = self.source(tmp_path / "k.py")
        source.path.unlink()
        with pytest.raises(SourceError, match="cannot be written: No such file"):
            write(source, "y = 2\n")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_nothing_is_left_behind(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        source = self.source(tmp_path / "k.py")

        def fail(handle: int) -> None:
            raise error

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises((SourceError, KeyboardInterrupt)):
            write(source, "y = 2\n")
        assert source.path.read_bytes() == source.data
        assert [path.name for path in tmp_path.iterdir()] == ["k.py"]
