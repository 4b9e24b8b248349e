"""Settings: what the project says, what the command line says, and what neither may say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from pallas_fix.config import Config, Options, load
from pallas_fix.pins import wanted_jax
from pallas_fix.pyproject import ConfigError

CODES = ("API001", "GPU001", "GPU002", "TPU001", "TPU002")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, which is the current folder."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/k.py").write_text("def matmul(x): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return tmp_path


def settings(text: str, **options: Any) -> Config:
    Path("pyproject.toml").write_text(text)
    return load([Path("kernels")], Options(**options), CODES)


def error(text: str, **options: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(text, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestProject:
    def test_without_settings(self, project: Path) -> None:
        config = load([Path("kernels/k.py")], Options(), CODES)
        assert config.root == project
        assert all(config.selects(code) for code in CODES)
        assert config.python == Path(sys.executable)

    def test_every_key(self, project: Path) -> None:
        config = settings(f"""
            [project]
            dependencies = ["numpy", "jax[tpu]>=0.9,<1"]
            [tool.pallas-fix]
            select = ["TPU", "GPU001"]
            ignore = ["TPU002"]
            exclude = ["/generated/"]
            targets = ["TPU7x", "h100"]
            jax = ">=0.9,<0.12"
            python = "{sys.executable}"
            loads = "all"
            per-file-ignores = {{ "kernels/*.py" = ["TPU001"] }}
            [[tool.pallas-fix.case]]
            case = "matmul(bf16[8,128])"
            path = "kernels/k.py"
            [[tool.pallas-fix.case]]
            case = "kernels/k.py:matmul(f32[8,128]) @ tpu7x"
            """)
        assert [code for code in CODES if config.selects(code)] == ["GPU001", "TPU001"]
        assert config.ignores(project / "kernels/k.py", "TPU001")
        assert not config.ignores(project / "kernels/k.py", "TPU002")
        assert not config.ignores(project / "k.py", "TPU001")
        assert config.targets == ("tpu7x", "h100")
        assert (config.jax, config.requires_jax) == (">=0.9,<0.12", "<1,>=0.9")
        assert config.loads == "all"
        assert [str(case) for case in config.cases] == [
            "kernels/k.py:matmul(bf16[8,128])",
            "kernels/k.py:matmul(f32[8,128]) @ tpu7x",
        ]

    def test_the_nearest_settings_win(self, project: Path) -> None:
        (project / "pyproject.toml").write_text("[tool.pallas-fix]\nselect = ['TPU']\n")
        (project / "kernels/pyproject.toml").write_text("[project]\nname = 'k'\n")
        config = load([Path("kernels/k.py")], Options(), CODES)
        assert config.root == project
        assert config.select == ("TPU",)

    def test_the_active_environment_is_the_default(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (project / "env/bin").mkdir(parents=True)
        (project / "env/bin/python").symlink_to(sys.executable)
        monkeypatch.setenv("VIRTUAL_ENV", str(project / "env"))
        assert load([project], Options(), CODES).python == project / "env/bin/python"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[tool.pallas-fix]\nselct = ['TPU']", "unknown key 'selct'; did you mean 'select'?"),
            ("[tool.pallas-fix]\nselect = ['TPU01']", "no rule is called 'TPU01'; did you mean"),
            ("[tool.pallas-fix]\nselect = 'TPU'", "select must be a list of strings"),
            ("[tool.pallas-fix]\ntargets = ['h10']", "unknown target 'h10'"),
            ("[tool.pallas-fix]\njax = 'new'", "tool.pallas-fix.jax: 'new' is neither a jax"),
            ("[tool.pallas-fix]\nloads = 'some'", "loads must be 'stored' or 'all', not 'some'"),
            ("[tool.pallas-fix]\nexclude = ['!']", "tool.pallas-fix.exclude: Invalid git pattern"),
            ("[tool.pallas-fix]\npython = 'kernels'", "is a folder; name its interpreter"),
            ("[tool.pallas-fix]\npython = 'nothing'", "is not an executable file"),
            ("[tool.pallas-fix]\nper-file-ignores = ['x']", "per-file-ignores must be a table"),
            ("[tool]\npallas-fix = 3", "tool.pallas-fix must be a table"),
            ("[tool.pallas-fix]\ncase = 'f()'", "[[tool.pallas-fix.case]]"),
            ("[[tool.pallas-fix.case]]\ncas = 'f()'", "unknown key 'cas'; did you mean 'case'?"),
            ("[[tool.pallas-fix.case]]\ncase = 'f('", "case 'f(', column"),
            ("[[tool.pallas-fix.case]]\ncase = 'x.py:f()'", "there is no file"),
            ("select = [", "is not valid TOML"),
        ],
    )
    def test_what_cannot_be_followed(self, text: str, message: str) -> None:
        found = error(text)
        assert message in found
        assert "pyproject.toml: " in found


class TestCommandLine:
    def test_it_stands_over_the_project(self) -> None:
        config = settings(
            "[tool.pallas-fix]\nselect = ['TPU']\nignore = ['TPU002']\ntargets = ['v6e']\n"
            "exclude = ['a']\n",
            select=("GPU,API",),
            ignore=("GPU002",),
            targets=("h100",),
            exclude=("b",),
        )
        assert [code for code in CODES if config.selects(code)] == ["API001", "GPU001"]
        assert config.targets == ("h100",)
        assert [exclude.patterns for exclude in config.excludes] == [("a",), ("b",)]

    def test_the_path_of_a_case_is_relative_to_the_current_folder(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(project / "kernels")
        config = load([Path("k.py")], Options(cases=("k.py:matmul(f32[8])",)), CODES)
        assert [case.path for case in config.cases] == ["kernels/k.py"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"select": ("XYZ",)}, "--select: no rule is called 'XYZ'"),
            ({"ignore": ("tpu001",)}, "--ignore: no rule is called 'tpu001'"),
            ({"targets": ("tpu7",)}, "--target: unknown target 'tpu7'"),
            ({"jax": ">=9"}, "--jax: no known jax release is in '>=9'"),
            ({"python": Path("nothing")}, "--python: nothing is not an executable"),
            ({"cases": ("f(bf17[8])",)}, "--case: case 'f(bf17[8])', column 3"),
        ],
    )
    def test_what_cannot_be_followed(self, options: dict[str, Any], message: str) -> None:
        assert error("", **options).startswith(message)


class TestJax:
    def locked(self, name: str, text: str) -> tuple[str, str]:
        Path(name).write_text(text)
        wanted = wanted_jax("", Path.cwd(), Path(sys.executable))
        return ", ".join(map(str, wanted.versions)), wanted.origin

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("uv.lock", '[[package]]\nname = "jax"\nversion = "0.9.1"\nsource = {}\n'),
            ("poetry.lock", '[[package]]\nname = "jax"\nversion = "0.9.1"\noptional = false\n'),
            ("pdm.lock", '[[package]]\nname = "jax"\nversion = "0.9.1"\n'),
            ("pylock.toml", '[[packages]]\nname = "jax"\nversion = "0.9.1"\n'),
            ("Pipfile.lock", '{"default": {"jax": {"version": "==0.9.1"}}}'),
            ("requirements.txt", "jaxlib==0.8.0\njax[tpu]==0.9.1 \\\n  --hash=sha256:0\n"),
            ("requirements-tpu.txt", "jax == 0.9.1 ; python_version > '3'\n"),
        ],
    )
    def test_lock_files(self, name: str, text: str) -> None:
        assert self.locked(name, text) == ("0.9.1", name)

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("uv.lock", '[[package]]\nname = "jaxtyping"\nversion = "0.9.1"\n'),
            ("Pipfile.lock", "not json"),
            ("requirements.txt", "jax>=0.9.1\njax-triton==0.2.0\n"),
        ],
    )
    def test_what_locks_no_jax(self, name: str, text: str) -> None:
        assert "installed for" in self.locked(name, text)[1]

    def test_of_several_locked_ones_the_newest(self) -> None:
        text = "".join(f'name = "jax"\nversion = "{v}"\n' for v in ("0.7.0", "0.10.1", "0.9.0"))
        assert self.locked("uv.lock", text)[0] == "0.10.1"

    def test_the_workspace_above(self, project: Path) -> None:
        (project / "uv.lock").write_text('name = "jax"\nversion = "0.9.1"\n')
        wanted = wanted_jax("", project / "kernels", Path(sys.executable))
        assert wanted.versions == (Version("0.9.1"),)

    @pytest.mark.parametrize(
        ("asked", "closed"), [("0.12.0.1", True), (">=0.11.2", False), (">=0.9,<0.10", True)]
    )
    def test_what_the_user_says(self, project: Path, asked: str, closed: bool) -> None:
        wanted = wanted_jax(asked, project, Path(sys.executable))
        assert (wanted.closed, wanted.origin) == (closed, "--jax")

    def test_an_interpreter_without_jax(self, project: Path) -> None:
        (project / "python").write_text("#!/bin/sh\nexit 1\n")
        (project / "python").chmod(0o755)
        wanted = wanted_jax("", project, project / "python")
        assert "the newest known" in wanted.origin
