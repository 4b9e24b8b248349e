"""The copy of a project in which one file is another version of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pallas_fix.verify import shadow as rooms
from pallas_fix.verify.shadow import Place, Shadow, place


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write(
        root,
        {
            "pkg/__init__.py": "",
            "pkg/mod.py": "old",
            "pkg/other.py": "other",
            "pkg/sizes.json": "{}",
            "pkg/native.so": "binary",
            "data/weights.bin": "big",
            ".git/hook.py": "",
            "env/pyvenv.cfg": "",
            "env/lib/x.py": "",
            "node_modules/x.py": "",
        },
    )
    (root / "pkg" / "loop").symlink_to(root)
    return root


def test_a_view_differs_in_one_file_alone(project: Path, tmp_path: Path) -> None:
    shadow = Shadow(project, tmp_path / "shadow")
    shadow.refresh(Path("pkg/mod.py"))
    views = [shadow.view(Path("pkg/mod.py"), text) for text in ("before", "after")]
    assert [(view / "pkg/mod.py").read_text() for view in views] == ["before", "after"]
    for view in views:
        assert (view / "pkg/other.py").read_text() == "other"
        assert (view / "pkg/native.so").resolve() == project / "pkg/native.so"
        assert {path.name for path in view.iterdir()} == {"pkg"}
        assert not (view / "pkg/loop").exists()
    assert (project / "pkg/mod.py").read_text() == "old"


def test_a_refresh_takes_what_has_changed(project: Path, tmp_path: Path) -> None:
    shadow = Shadow(project, tmp_path / "shadow")
    shadow.refresh(Path("pkg/mod.py"))
    write(project, {"pkg/other.py": "changed by a fix", "pkg/new.py": "new"})
    shadow.refresh(Path("pkg/mod.py"))
    view = shadow.view(Path("pkg/mod.py"), "")
    assert (view / "pkg/other.py").read_text() == "changed by a fix"
    assert (view / "pkg/new.py").read_text() == "new"


def test_the_files_folder_comes_first_where_a_project_is_too_large(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, {f"a{number}.py": "" for number in range(9)})
    monkeypatch.setattr(rooms, "MOST_FILES", 6)
    shadow = Shadow(project, tmp_path / "shadow")
    shadow.refresh(Path("pkg/mod.py"))
    assert shadow.full
    assert {path.name for path in (shadow.base / "pkg").iterdir()} >= {"__init__.py", "other.py"}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("x = 'é'\r\n", "x = 'é'\r\n".encode()),
        ("# coding: latin-1\nx = 'é'\n", "# coding: latin-1\nx = 'é'\n".encode("latin-1")),
        ("\ufeffx = 1\n", b"x = 1\n"),
    ],
)
def test_the_text_is_written_as_it_says_of_itself(
    project: Path, tmp_path: Path, text: str, data: bytes
) -> None:
    view = Shadow(project, tmp_path / "shadow").view(Path("pkg/mod.py"), text)
    assert (view / "pkg/mod.py").read_bytes() == data


@pytest.mark.parametrize(
    ("path", "text", "module", "search"),
    [
        ("mod.py", "", "mod", (".", "src")),
        ("src/pkg/sub/mod.py", "", "pkg.sub.mod", ("src", ".")),
        ("src/pkg/__init__.py", "", "pkg", ("src", ".")),
        ("tests/unit/test_mod.py", "", "test_mod", ("tests/unit", "tests", "lib", ".", "src")),
        ("src/space/mod.py", "from . import x", "space.mod", ("src", ".")),
        ("loose/sub/mod.py", "from .. import x", "loose.sub.mod", (".", "lib", "src")),
    ],
)
def test_how_a_project_imports_its_files(
    tmp_path: Path, path: str, text: str, module: str, search: tuple[str, ...]
) -> None:
    write(
        tmp_path,
        {
            "src/pkg/__init__.py": "",
            "src/pkg/sub/__init__.py": "",
            "tests/conftest.py": "",
            "lib/x.py": "",
            path: text,
        },
    )
    settings = "[tool.pytest.ini_options]\npythonpath = ['lib', 'gone', '/', '../up']\n"
    (tmp_path / "pyproject.toml").write_text(settings)
    found = place(tmp_path, Path(path), text)
    assert found.module == module
    assert found.search[0] == search[0]
    assert set(found.search) == {*search, "lib"}


def test_settings_that_are_broken_are_no_reason_to_stop(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": "[tool", "mod.py": ""})
    assert place(tmp_path, Path("mod.py"), "") == Place("mod", (".",))
