"""Settings: what the project says, what the command line says, and what neither may say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from pallas_fix.config import Config, Options, load
from pallas_fix.discover import discover
from pallas_fix.pins import wanted_jax
from pallas_fix.projects import Projects
from pallas_fix.pyproject import ConfigError
from pallas_fix.rules import all_rules
from pallas_fix.settings import described

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


class TestProjects:
    """Several projects in one tree: each file has the settings of the nearest one."""

    @pytest.fixture
    def tree(self, project: Path) -> Path:
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        (project / "pyproject.toml").write_text(
            "[tool.pallas-fix]\nselect = ['TPU']\nexclude = ['old']\ntargets = ['v6e']\n"
        )
        inner = project / "packages/inner"
        (inner / "src/old").mkdir(parents=True)
        (inner / "pyproject.toml").write_text(
            "[project]\nname = 'inner'\ndependencies = ['jax>=0.11']\n"
            "[tool.pallas-fix]\nignore = ['GPU002']\nexclude = ['gen_*']\n"
        )
        plain = project / "packages/plain"
        plain.mkdir()
        (plain / "pyproject.toml").write_text("[project]\nname = 'plain'\n")
        for folder in (project, inner, inner / "src", inner / "src/old", plain):
            (folder / "k.py").write_text("def f(): ...\n")
            (folder / "gen_k.py").write_text("def f(): ...\n")
        return project

    def projects(self, *paths: str, **options: Any) -> Projects:
        return Projects([Path(path) for path in paths], Options(**options), CODES)

    def test_the_nearest_settings_are_those_of_a_file(self, tree: Path) -> None:
        projects = self.projects(".")
        outer = projects.of(Path("k.py"))
        inner = projects.of(Path("packages/inner/src/k.py"))
        assert projects.main is outer
        assert (outer.root, outer.select, outer.targets) == (tree, ("TPU",), ("v6e",))
        assert (inner.root, inner.select, inner.targets) == (tree / "packages/inner", (), ())
        assert inner.requires_jax == ">=0.11"
        assert [code for code in CODES if inner.selects(code)] == [
            "API001",
            "GPU001",
            "TPU001",
            "TPU002",
        ]
        assert projects.of(Path("packages/inner")) is inner
        assert projects.of(Path("packages/plain/k.py")).root == tree

    def test_the_command_line_stands_over_each(self, tree: Path) -> None:
        projects = self.projects(".", select=("GPU",), targets=("h100",))
        for path in ("k.py", "packages/inner/k.py"):
            config = projects.of(Path(path))
            assert (config.select, config.targets) == (("GPU",), ("h100",))

    def test_a_file_is_excluded_by_its_project_and_by_that_of_the_run(self, tree: Path) -> None:
        projects = self.projects(".")
        found = sorted(str(path) for path in discover([Path()], projects.excludes))
        assert found == [
            "gen_k.py",
            "k.py",
            "kernels/k.py",
            "packages/inner/k.py",
            "packages/inner/src/k.py",
            "packages/plain/gen_k.py",
            "packages/plain/k.py",
        ]
        projects = self.projects("packages/inner")
        found = sorted(str(path) for path in discover([Path("packages/inner")], projects.excludes))
        assert found == [
            "packages/inner/k.py",
            "packages/inner/src/k.py",
            "packages/inner/src/old/k.py",
        ]

    def test_settings_that_cannot_be_followed_are_those_of_their_files(self, tree: Path) -> None:
        (tree / "packages/inner/pyproject.toml").write_text("[tool.pallas-fix]\nselct = []\n")
        projects = self.projects(".")
        for _ in range(2):
            with pytest.raises(ConfigError, match="unknown key 'selct'; did you mean 'select'"):
                projects.of(Path("packages/inner/k.py"))
        assert f"{tree}/packages/inner/gen_k.py" not in projects
        assert projects.of(Path("packages/plain/k.py")).file == tree / "pyproject.toml"
        with pytest.raises(ConfigError):
            self.projects("packages/inner")

    def test_a_link_has_the_settings_of_what_it_points_to(self, tree: Path) -> None:
        (tree / "link.py").symlink_to("packages/inner/k.py")
        assert self.projects(".").of(Path("link.py")).root == tree / "packages/inner"

    def test_what_is_in_force_and_who_set_it(self, tree: Path) -> None:
        file = tree / "packages/inner/pyproject.toml"
        file.write_text(
            file.read_text() + "jax = '0.12.0.1'\nloads = 'all'\n"
            "per-file-ignores = { 'src/' = ['TPU'] }\n"
        )
        (tree / "requirements.txt").write_text("jax==0.11.2\n")
        paths = [Path(), Path("packages/inner/src/k.py")]
        projects = Projects(paths, Options(targets=("h100",)), all_rules())
        lines = list(described(projects, paths, all_rules()))
        outer, inner = lines[: lines.index("")], lines[lines.index("") + 1 :]
        assert outer[0] == "for .:"
        assert f"project  {tree}" in outer
        assert "jax      0.11.2 (requirements.txt)" in outer
        assert "rules    TPU001, TPU002, TPU003, TPU004 (tool.pallas-fix.select)" in outer
        assert "targets  h100 (--target)" in outer
        assert f"exclude  old (below {tree})" in outer
        assert inner[0] == "for packages/inner/src/k.py:"
        assert f"settings {file}" in inner
        assert "jax      0.12.0.1 (tool.pallas-fix.jax)" in inner
        [line] = [line for line in inner if line.startswith("rules    ")]
        codes = line.removeprefix("rules    ").split(", ")
        assert "GPU001" in codes
        assert not {code for code in codes if code.startswith("TPU")}
        assert "loads    all (tool.pallas-fix.loads)" in inner
