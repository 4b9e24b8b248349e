"""A printed diff, applied by git, gives the bytes that an in-place run writes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pallas_fix.report.diff import diff, name_in_diff

BODY = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n"

CONTENTS = {
    "plain": (BODY, BODY.replace("c = 3", "c = 4")),
    "crlf": (BODY.replace("\n", "\r\n"), BODY.replace("c = 3", "c = 4").replace("\n", "\r\n")),
    "mixed newlines": ("a\r\nb\nc\rd\n\r\ne\n", "a\r\nb\nX\rd\n\r\ne\n"),
    "carriage returns only": ("a\rb\rc\r", "a\rX\rc\r"),
    "form feed": ("a\n\fb\nc\f\nd\n", "a\n\fb\nX\f\nd\n"),
    "line separators": ("a\u2028b\nc\x85d\ve\x1cf\n", "a\u2028b\nX\x85d\ve\x1cf\n"),
    "no final newline": ("a\nb\nc", "a\nX\nc"),
    "final newline lost": ("a\nb\n", "a\nb"),
    "final newline won": ("a\nb", "a\nb\n"),
    "first lines": (BODY, "import x\n" + BODY),
    "emptied": (BODY, ""),
    "filled": ("", BODY),
    "looks like a diff": ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n", "--- a/x\n@@ -1 +1 @@\n+a\n"),
    "mark": ("\ufeffa = 1\n", "\ufeffa = 2\n"),
    "blanks at the end": ("a \t\nb\n", "a \t\nX  \n"),
}

NAMES = [
    "k.py",
    "deep/er/k.py",
    "with space.py",
    "ends with space ",
    "tab\there.py",
    'quo"te.py',
    "back\\slash.py",
    "é日.py",
    "new\nline.py",
    "bell\a.py",
]


def git_apply(top: Path, patch: bytes, cwd: Path | None = None) -> None:
    done = subprocess.run(
        ["git", "apply", "-"], cwd=cwd or top, input=patch, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(path: Path, before: bytes, after: bytes, top: Path, cwd: Path | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    git_apply(top, diff(name_in_diff(path), before, after), cwd)
    assert path.read_bytes() == after


@pytest.mark.parametrize(("before", "after"), CONTENTS.values(), ids=CONTENTS)
def test_contents(top: Path, before: str, after: str) -> None:
    check(top / "k.py", before.encode(), after.encode(), top)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "euc-jp", "shift_jis", "gbk"])
def test_the_encoding_of_the_file(top: Path, encoding: str) -> None:
    word = "é" if encoding in ("latin-1", "cp1252") else "表示"
    before = f"# coding: {encoding}\nx = '{word}'\ny = 1\n".encode(encoding)
    check(top / "k.py", before, before.replace(b"y = 1", b"y = 2"), top)


@pytest.mark.parametrize("name", NAMES)
def test_names(top: Path, name: str) -> None:
    check(top / name, b"a = 1\n", b"a = 2\n", top)


def test_several_files_in_one_diff(top: Path) -> None:
    patch = b""
    for name in NAMES:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a = 1")
        patch += diff(name_in_diff(path), b"a = 1", b"a = 2")
    git_apply(top, patch)
    assert {(top / name).read_bytes() for name in NAMES} == {b"a = 2"}


def test_from_a_folder_that_holds_one_of_its_own_name(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = top / "kernels/kernels"
    inner.mkdir(parents=True)
    (inner / "k.py").write_bytes(b"other = 1\n")
    monkeypatch.chdir(top / "kernels")
    check(Path("k.py"), b"a = 1\n", b"a = 2\n", top, cwd=top / "kernels")
    assert (inner / "k.py").read_bytes() == b"other = 1\n"


def test_a_link_is_patched_where_it_points(top: Path) -> None:
    (top / "real").mkdir()
    (top / "real/k.py").write_bytes(b"a = 1\n")
    (top / "link.py").symlink_to("real/k.py")
    (top / "folder").symlink_to("real")
    assert name_in_diff(top / "link.py") == "real/k.py"
    assert name_in_diff(top / "folder/k.py") == "real/k.py"
    git_apply(top, diff(name_in_diff(Path("link.py")), b"a = 1\n", b"a = 2\n"))
    assert (top / "real/k.py").read_bytes() == b"a = 2\n"


def test_outside_a_work_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(Path("sub/k.py"), b"a = 1\n", b"a = 2\n", tmp_path)


def test_nothing_to_say() -> None:
    assert diff("k.py", b"a\n", b"a\n") == b""


LINE = st.sampled_from([b"a", b"b", b"", b"\r", b"\f", b"-", b"+", b"@@", b"\\", b" x ", b"\xff"])


@settings(max_examples=60, deadline=None)
@given(st.lists(LINE, max_size=12), st.lists(LINE, max_size=12))
def test_any_two_texts(
    tmp_path_factory: pytest.TempPathFactory, before: list[bytes], after: list[bytes]
) -> None:
    old, new = b"\n".join(before), b"\n".join(after)
    folder = tmp_path_factory.mktemp("any")
    (folder / "k.py").write_bytes(old)
    patch = diff("k.py", old, new)
    if patch:
        git_apply(folder, patch)
    assert (folder / "k.py").read_bytes() == new
