"""Baselines: what a project knows and lives with, while its code moves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from console import Console
from kernels import MXU
from pallas_fix.baseline import Baseline, write_baseline
from pallas_fix.pyproject import ConfigError
from pallas_fix.rules import all_rules
from pallas_fix.sieve import Key

BROKEN = MXU.replace("pltpu.ACC(0)", "pltpu.VMEM")
OPEN = (Path(__file__).parent.parent / "examples/gpu_wgmma_scale.py").read_text()
HEALTHY = "x = 1\n"
KEY: Key = ("TPU001", "kernel", "`acc` is wrong")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "requirements.txt").write_text("jax==0.12.0.1\n")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def console(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Console:
    return Console(capsysbinary, monkeypatch)


def entries() -> list[tuple[str, str, int]]:
    document = json.loads(Path("b.json").read_text())
    return [(entry["path"], entry["code"], entry["count"]) for entry in document["findings"]]


class TestRuns:
    def test_what_is_known_is_neither_fixed_nor_reported(self, console: Console) -> None:
        Path("src/k.py").write_text(BROKEN)
        Path("src/open.py").write_text(OPEN)
        status, _, error = console.apply("--check", "--write-baseline", "b.json", "src")
        assert (status, "b.json knows 3 findings from now on" in error) == (0, True)
        assert entries() == [
            ("src/k.py", "TPU001", 1),
            ("src/open.py", "GPU001", 1),
            ("src/open.py", "GPU002", 1),
        ]
        status, _, error = console.apply("--baseline", "b.json", "src")
        assert status == 0
        assert error.splitlines()[0] == "nothing else found in 2 files"
        assert "3 findings known to b.json: left alone" in error
        assert Path("src/k.py").read_text() == BROKEN

    def test_code_that_moves_stays_known(self, console: Console) -> None:
        Path("src/k.py").write_text(BROKEN)
        console.apply("--check", "--write-baseline", "b.json", "src")
        moved = "import os\n\n\n" + BROKEN.replace("\n\n\n", "\n\n# more\n\n")
        Path("src/k.py").write_text(moved)
        assert console.apply("--check", "--baseline", "b.json", "src")[0] == 0

    def test_only_what_is_new_is_found_and_fixed(self, console: Console) -> None:
        Path("src/k.py").write_text(BROKEN)
        console.apply("--check", "--write-baseline", "b.json", "src")
        Path("src/new.py").write_text(BROKEN)
        Path("src/k.py").write_text(BROKEN.replace("kernel", "renamed"))
        status, out, error = console.apply("--diff", "--baseline", "b.json", "src")
        assert status == 1
        assert out.count(b"diff --git") == 2
        assert "gone, but still in b.json" in error
        assert "src/k.py: TPU001 in kernel: " in error

    def test_more_of_a_kind_than_are_known_are_all_new(self, console: Console) -> None:
        lines = "        product = acc[...]\n        acc[...] = product.reshape(N, M) * SCALE\n"
        assert lines in OPEN
        Path("src/open.py").write_text(OPEN)
        console.apply("--check", "--write-baseline", "b.json", "src")
        Path("src/open.py").write_text(OPEN.replace(lines, lines * 2))
        words = ("--check", "--baseline", "b.json", "--select", "GPU002", "src")
        status, _, error = console.apply("--statistics", *words)
        assert (status, "2  GPU002" in error) == (1, True)

    def test_what_is_left_after_fixes_is_what_is_known(self, console: Console) -> None:
        Path("src/open.py").write_text(OPEN)
        status, _, error = console.apply("--write-baseline", "b.json", "src")
        assert (status, "b.json knows 1 finding from now on" in error) == (0, True)
        assert entries() == [("src/open.py", "GPU002", 1)]
        assert "assert product.shape == acc.shape" in Path("src/open.py").read_text()
        assert console.apply("--baseline", "b.json", "src")[0] == 0

    def test_it_is_written_anew_from_what_is_known_and_what_is_not(self, console: Console) -> None:
        Path("src/k.py").write_text(BROKEN)
        console.apply("--check", "--write-baseline", "b.json", "src")
        Path("src/open.py").write_text(OPEN)
        words = ("--check", "--baseline", "b.json", "--write-baseline", "b.json", "src")
        assert console.apply(*words)[0] == 0
        assert len(entries()) == 3
        before = Path("b.json").read_bytes()
        assert console.apply(*words)[0] == 0
        assert Path("b.json").read_bytes() == before

    def test_what_nothing_needs_any_more(self, console: Console) -> None:
        for name in ("gone", "fixed", "elsewhere", "other"):
            Path(f"src/{name}.py").write_text(BROKEN)
        Path("src/part").mkdir()
        Path("src/part/open.py").write_text(OPEN)
        console.apply("--check", "--write-baseline", "b.json", "src")
        Path("src/gone.py").unlink()
        Path("src/fixed.py").write_text(HEALTHY)
        Path("src/other.py").write_text("x = (\n")
        words = ("--check", "--baseline", "b.json")
        error = console.apply(*words, "src/fixed.py")[2]
        told = [line.split(":")[0].strip() for line in error.splitlines() if " in kernel: " in line]
        assert told == ["src/fixed.py", "src/gone.py"]
        assert "--write-baseline writes it anew" in error
        Path("src/part/open.py").write_text(HEALTHY)
        error = console.apply(*words, "--select", "GPU001", "src/part")[2]
        assert "src/part/open.py: GPU001 in " in error
        assert "src/part/open.py: GPU002 in " not in error

    def test_a_file_that_cannot_be_read_is_not_judged(self, console: Console) -> None:
        Path("src/k.py").write_text(BROKEN)
        console.apply("--check", "--write-baseline", "b.json", "src")
        Path("src/k.py").write_text(BROKEN + "x = (\n")
        status, _, error = console.apply("--check", "--baseline", "b.json", "src")
        assert (status, "gone, but" in error) == (2, False)

    def test_a_rule_that_is_no_more(self, console: Console) -> None:
        Path("src/k.py").write_text(HEALTHY)
        path = str(Path("src/k.py").resolve())
        write_baseline(Path("b.json"), {path: {("OLD001", "f", "m"): 2}})
        error = console.apply("--check", "--baseline", "b.json", "src")[2]
        assert "src/k.py: OLD001 in f: m (2 times)" in error

    def test_paths_are_relative_to_the_file(
        self, console: Console, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("src/k.py").write_text(BROKEN)
        (project / "ci").mkdir()
        console.apply("--check", "--write-baseline", "ci/b.json", "src")
        assert '"path": "../src/k.py"' in Path("ci/b.json").read_text()
        monkeypatch.chdir(project / "src")
        assert console.apply("--check", "--baseline", "../ci/b.json", "k.py")[0] == 0

    def test_standard_input(self, console: Console) -> None:
        Path("src/k.py").write_text(BROKEN)
        console.apply("--check", "--write-baseline", "b.json", "src")
        words = ("--baseline", "b.json", "--stdin-filename", "src/k.py", "-")
        assert console.apply(*words, given=BROKEN.encode())[:2] == (0, BROKEN.encode())
        status, out, _ = console.apply(*words, given=BROKEN.replace("kernel", "new").encode())
        assert status == 0
        assert b"pltpu.ACC(0)" in out

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--write-baseline", "b.json", "-"), "--write-baseline looks at files"),
            (("--write-baseline", "b.json", "--staged", "."), "leave --since out"),
            (("--write-baseline", "no/b.json", "."), "no/b.json: cannot be written: No such"),
            (("--baseline", "none.json", "."), "none.json: is not there; --write-baseline makes"),
        ],
    )
    def test_wrong_usage(self, console: Console, words: tuple[str, ...], message: str) -> None:
        status, out, error = console.apply(*words)
        assert (status, out) == (2, b"")
        assert message in error


class TestFile:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is no JSON (Expecting value: line 1 column 1 (char 0)); write it anew"),
            ("<<<<<<< HEAD\n", "is no JSON"),
            ("\xff", "is no JSON"),
            ("[" * 100_000, "is no JSON"),
            ("[]", "is no baseline: this pallas-fix writes version 1"),
            ('{"version": 2, "findings": []}', "is of version 2: this pallas-fix writes version 1"),
            ('{"version": 1}', "'findings' must be a list"),
            ('{"version": 1, "findings": [3]}', "finding 1: 'path' must be of type str"),
            (
                '{"version": 1, "findings": [{"path": "k", "code": "A", "function": "f", '
                '"message": "m", "count": true}]}',
                "finding 1: 'count' must be of type int",
            ),
        ],
    )
    def test_what_is_no_baseline(self, text: str, message: str) -> None:
        Path("b.json").write_bytes(text.encode("latin-1"))
        with pytest.raises(ConfigError) as caught:
            Baseline.read(Path("b.json"))
        assert str(caught.value).startswith("--baseline: b.json: ")
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_what_is_written_is_read_in_any_order(self, project: Path) -> None:
        other: Key = ("GPU001", "f.<locals>.g", '"quoted" \u202e line 3\n')
        found = {
            f"{project}/src/b.py": {KEY: 2, other: 1},
            f"{project}/src/a\nb é.py": {KEY: 1},
            f"{project}/src/c.py": {},
        }
        assert write_baseline(Path("b.json"), found) == 4
        written = Path("b.json").read_bytes()
        assert written.isascii()
        assert write_baseline(Path("b.json"), dict(reversed(found.items()))) == 4
        assert Path("b.json").read_bytes() == written
        baseline = Baseline.read(Path("b.json"))
        assert baseline.known(Path("src/b.py")) == {KEY: 2, other: 1}
        assert baseline.known(Path("src/a\nb é.py")) == {KEY: 1}
        assert baseline.known(Path("src/c.py")) == {}

    def test_an_empty_one(self) -> None:
        assert write_baseline(Path("b.json"), {}) == 0
        assert json.loads(Path("b.json").read_text()) == {"version": 1, "findings": []}
        assert Baseline.read(Path("b.json")).entries == {}

    def test_it_is_written_whole_or_not_at_all(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_baseline(Path("b.json"), {f"{project}/k.py": {KEY: 1}})
        before = Path("b.json").read_bytes()

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(ConfigError, match=r"b\.json: cannot be written: No space left"):
            write_baseline(Path("b.json"), {})
        assert Path("b.json").read_bytes() == before
        assert sorted(path.name for path in project.iterdir() if path.is_file()) == [
            "b.json",
            "requirements.txt",
        ]

    def test_long_lists_are_cut(self, project: Path) -> None:
        found = {f"{project}/{number:02}.py": {KEY: 1} for number in range(30)}
        write_baseline(Path("b.json"), found)
        lines = Baseline.read(Path("b.json")).unused({}, lambda path, code: code in all_rules())
        assert len(lines) == 22
        assert lines[-1] == "    and 10 more"
