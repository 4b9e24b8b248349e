"""The command line, in processes of its own: what it writes where, and how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console import Console
from pallas_fix import verify_case
from pallas_fix.rules import all_rules
from pallas_fix.verify.verdict import CaseResult, Side, Stage, StageResult

KERNELS = Path(__file__).parent.parent / "examples"
BROKEN = (KERNELS / "tpu_matmul.py").read_bytes()
OPEN = (KERNELS / "gpu_wgmma_scale.py").read_bytes()
JAX = "0.12.0.1"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git work tree that is the current folder; its jax is locked."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "requirements.txt").write_text(f"jax=={JAX}\n")
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def console(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Console:
    return Console(capsysbinary, monkeypatch)


class TestApply:
    def test_in_place_with_the_account_on_stderr(self, console: Console) -> None:
        Path("k.py").write_bytes(BROKEN)
        Path("healthy.py").write_text("x = 1\n")
        status, out, error = console.apply(".")
        assert (status, out) == (0, b"")
        assert Path("k.py").read_bytes() == console.fixed(BROKEN)
        assert "k.py:" in error
        assert error.splitlines()[-2:] == [
            "1 fixed in 1 file (1 unverified)",
            "no kernel was run: --no-verify",
        ]
        assert console.apply(".")[0] == 0

    def test_the_diff_is_what_apply_writes(self, console: Console) -> None:
        Path("sub").mkdir()
        Path("sub/k.py").write_bytes(BROKEN.replace(b"\n", b"\r\n"))
        Path("sub/é b.py").write_bytes(b"\xef\xbb\xbf" + BROKEN.rstrip())
        status, out, error = console.apply("--diff", ".")
        assert status == 1
        assert "2 would be fixed in 2 files" in error
        assert Path("sub/k.py").read_bytes() == BROKEN.replace(b"\n", b"\r\n")
        names = [Path("sub/k.py"), Path("sub/é b.py")]
        before = [path.read_bytes() for path in names]
        console.apply(".")
        written = [path.read_bytes() for path in names]
        for path, data in zip(names, before, strict=True):
            path.write_bytes(data)
        subprocess.run(["git", "apply", "-"], input=out, check=True)
        assert [path.read_bytes() for path in names] == written
        assert before != written

    def test_the_gate(self, console: Console) -> None:
        Path("k.py").write_bytes(BROKEN)
        status, out, error = console.apply("--check", "k.py")
        assert (status, out) == (1, b"")
        assert "TPU001 [vmem-accumulator]" in error
        assert Path("k.py").read_bytes() == BROKEN
        console.apply("k.py")
        assert console.apply("--check", "k.py")[0] == 0

    def test_standard_input(self, console: Console) -> None:
        assert console.apply("-", given=b"x = 1\r\n")[:2] == (0, b"x = 1\r\n")
        status, out, _ = console.apply("--diff", "--stdin-filename", "sub/k.py", "-", given=BROKEN)
        assert status == 1
        assert out.startswith(b"diff --git a/sub/k.py b/sub/k.py\n")
        assert console.apply("--check", "-", given=BROKEN)[:2] == (1, b"")
        status, _, error = console.apply("--stdin-filename", "k.py", "sub")
        assert (status, "goes with '-'" in error) == (2, True)
        assert not list(Path().glob("*.py"))

    def test_a_plausible_fix_is_shown_and_written_on_demand(self, console: Console) -> None:
        Path("k.py").write_bytes(OPEN)
        status, _, error = console.apply("--select", "GPU002", "k.py")
        assert status == 1
        assert Path("k.py").read_bytes() == OPEN
        assert "-        acc[...] = product.reshape(N, M) * SCALE" in error
        assert "add --unverified" in error
        assert console.apply("--select", "GPU002", "--unverified", "k.py")[0] == 0
        assert b"acc[...] = product * SCALE" in Path("k.py").read_bytes()

    def test_comments_and_settings_keep_rules_away(self, console: Console) -> None:
        kept = {
            "skip.py": b"# pallas-fix: skip-file\n" + BROKEN,
            "line.py": BROKEN.replace(
                b"scratch_shapes=[pltpu.VMEM((BLOCK_M, N), jnp.float32)],",
                b"scratch_shapes=[pltpu.VMEM((BLOCK_M, N), jnp.float32)],"
                b"  # pallas-fix: ignore[TPU001]",
            ),
            "generated/k.py": BROKEN,
            "old/k.py": BROKEN,
        }
        for name, data in kept.items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(data)
        Path("pyproject.toml").write_text(
            "[tool.pallas-fix]\nexclude = ['generated']\nper-file-ignores = { 'old/' = ['TPU'] }\n"
        )
        assert console.apply(".")[0] == 0
        assert {name: Path(name).read_bytes() for name in kept} == kept

    def test_bad_files_are_lines_and_the_rest_is_done(self, console: Console) -> None:
        Path("a.py").write_bytes(b"# pallas matmul_pop\nx = '\xe9'\n")
        Path("b.py").write_bytes(BROKEN + b"def f(:\n")
        Path("c.py").write_bytes(BROKEN + b"x = " + b"-" * 100_000 + b"1\n")
        Path("k.py").write_bytes(BROKEN)
        status, _, error = console.apply(".", "gone.py")
        assert status == 2
        a, b, c, gone, *_ = error.splitlines()
        assert a.startswith("a.py:2: error: byte 0xe9 is not utf-8")
        assert b.startswith(f"b.py:{BROKEN.count(10) + 1}: error: is no Python")
        assert c.startswith("c.py: error: is nested too deeply")
        assert gone.startswith("gone.py: error: no such file")
        assert Path("k.py").read_bytes() == console.fixed(BROKEN)

    def test_many_files_in_several_processes(self, console: Console) -> None:
        for number in range(12):
            Path(f"k{number}.py").write_bytes(BROKEN)
        status, _, error = console.apply("--jobs", "2", ".")
        assert status == 0
        assert "12 fixed in 12 files" in error
        assert {path.read_bytes() for path in Path().glob("*.py")} == {console.fixed(BROKEN)}

    def test_a_range_that_the_fix_does_not_cover(self, console: Console) -> None:
        Path("k.py").write_bytes(BROKEN)
        status, _, error = console.apply("--jax", ">=0.10,<0.13", "k.py")
        assert status == 1
        assert "not fixed: the new form needs jax >=0.11.2" in error
        assert Path("k.py").read_bytes() == BROKEN
        assert console.apply("--jax", "0.10.2", "k.py")[0] == 0
        assert Path("k.py").read_bytes() == BROKEN
        assert console.apply("--jax", ">=0.10", "k.py")[0] == 0
        assert Path("k.py").read_bytes() == console.fixed(BROKEN)

    def test_a_fix_that_raises_the_minimum_says_so(self, console: Console) -> None:
        Path("k.py").write_bytes(BROKEN)
        Path("pyproject.toml").write_text("[project]\nname='k'\ndependencies = ['jax>=0.9']\n")
        assert "raises the lowest jax that works to 0.11.2" in console.apply("k.py")[2]

    def test_the_document(self, console: Console) -> None:
        Path("k.py").write_bytes(BROKEN)
        status, out, _ = console.apply(
            "--check", "--output", "json", "--output", "json=a.json", "k.py"
        )
        assert status == 1
        read = json.loads(out)
        assert json.loads(Path("a.json").read_text()) == read
        assert read["files"][0]["findings"][0]["code"] == "TPU001"
        assert console.apply("--diff", "--output", "json", "k.py")[0] == 2

    def test_quiet(self, console: Console) -> None:
        Path("k.py").write_bytes(BROKEN)
        assert console.apply("-qq", "--check", "k.py") == (1, b"", "")

    def test_colour_only_where_it_is_wanted(
        self, console: Console, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Path("k.py").write_bytes(BROKEN)
        assert "\x1b[" not in console.apply("--check", "k.py")[2]
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b[" in console.apply("--check", "k.py")[2]
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b[" not in console.apply("--check", "k.py")[2]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "Missing argument 'PATH...'"),
            (("--diff", "--check", "."), "exclude each other"),
            (("-", "k.py"), "'-' stands alone"),
            (("--select", "TPU9", "."), "no rule is called 'TPU9'; did you mean 'TPU0"),
            (("--output", "jsn", "."), "no format is called 'jsn'; did you mean 'json'?"),
            (("--jobs", "0", "."), "0 is not in the range"),
            (("--case", "f(", "."), "--case: case 'f('"),
            (("--dif", "."), "No such option"),
        ],
    )
    def test_wrong_usage(self, console: Console, words: tuple[str, ...], message: str) -> None:
        status, out, error = console.apply(*words)
        assert (status, out) == (2, b"")
        assert message in error

    def test_a_closed_pipe(self) -> None:
        Path("k.py").write_bytes(BROKEN)
        command = [sys.executable, "-m", "pallas_fix", "apply", "--no-verify", "--diff", "k.py"]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        error = running.stderr.read()
        running.stderr.close()
        assert running.wait() == 1
        assert b"Traceback" not in error
        assert b"BrokenPipe" not in error


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str) -> None:
    Path("k.py").write_bytes(BROKEN)
    command = f"{sys.executable} -m pallas_fix apply --no-verify --check k.py {closed}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert done.returncode == 1
    assert b"error" not in done.stderr


def test_a_full_disk_is_no_internal_error() -> None:
    Path("k.py").write_bytes(BROKEN)
    command = [sys.executable, "-m", "pallas_fix", "apply", "--no-verify", "--diff", "k.py"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert done.stderr == b"error: [Errno 28] No space left on device\n"


def test_a_path_that_the_system_refuses_is_one_problem(console: Console) -> None:
    Path("k.py").write_bytes(BROKEN)
    status, _, error = console.apply("--check", "k.py", f"{'long' * 100}/k.py")
    assert status == 2
    assert "1 would be fixed in 1 file" in error
    assert "1 problem: see above" in error
    assert "internal error" not in error


def test_a_file_that_cannot_be_written_keeps_its_findings(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pallas_fix import run
    from pallas_fix.files import Source, SourceError

    def write(source: Source, text: str) -> str:
        raise SourceError(source.path, None, "is read-only: not written")

    monkeypatch.setattr(run, "write", write)
    Path("k.py").write_bytes(BROKEN)
    status, out, error = console.apply("--output", "json", "k.py")
    assert status == 2
    assert "k.py: error: is read-only: not written" in error
    assert "1 not fixed (1 not-written)" in error
    [file] = json.loads(out)["files"]
    [finding] = file["findings"]
    assert (file["changed"], finding["state"], finding["line"]) == (False, "not fixed", 31)


def test_a_file_that_libcst_cannot_hold_keeps_its_findings(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pallas_fix.rewrite
    from pallas_fix.rewrite.text import RewriteError

    def parse(text: str) -> None:
        raise RewriteError("libcst does not print this file back as it is (line 3 differs)")

    monkeypatch.setattr(pallas_fix.rewrite, "parse", parse)
    monkeypatch.setattr(pallas_fix.rewrite.text, "parse", parse)
    Path("k.py").write_bytes(BROKEN)
    status, _, error = console.apply("k.py")
    assert status == 1
    assert "not fixed: libcst does not print this file back as it is" in error
    assert "1 not fixed (1 file-not-editable)" in error
    assert Path("k.py").read_bytes() == BROKEN


SLOW = """
import pathlib, time
pathlib.Path({!r}).touch()
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_leaves_whole_files(
    console: Console, project: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """While the second file is verified: the first is written, the second as it was."""
    first = BROKEN.replace(b"# pallas-fix: case", b"#")
    Path("a.py").write_bytes(first)
    Path("pyproject.toml").write_text("[tool.pallas-fix]\nignore = ['GPU']\n")
    mark = project / "mark"
    slow = BROKEN + SLOW.format(str(mark)).encode()
    Path("b.py").write_bytes(slow)
    monkeypatch.setenv("TMPDIR", str(project))
    command = [sys.executable, "-m", "pallas_fix", "apply", "--until", "import", "a.py", "b.py"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not mark.exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    running.send_signal(number)
    _, error = running.communicate(timeout=60)
    assert running.returncode == (130 if number == signal.SIGINT else 128 + number), error.decode()
    assert b"Traceback" not in error
    assert Path("a.py").read_bytes() == console.fixed(first)
    assert Path("b.py").read_bytes() == slow
    assert not list(project.glob("pallas-fix-*"))


def test_each_file_has_the_settings_of_its_project(console: Console) -> None:
    for folder, text in (
        (".", "select = ['GPU']\n"),
        ("tpu", "select = ['TPU']\n"),
        ("both", "per-file-ignores = { 'old/' = ['TPU'] }\n"),
        ("wrong", "selct = ['TPU']\n"),
    ):
        Path(folder, "old").mkdir(parents=True, exist_ok=True)
        Path(folder, "pyproject.toml").write_text(f"[tool.pallas-fix]\n{text}")
        Path(folder, "k.py").write_bytes(BROKEN)
        Path(folder, "old/k.py").write_bytes(BROKEN)
    status, out, error = console.apply("--check", "--output", "json", ".")
    document = json.loads(out)
    found = [file["path"] for file in document["files"] if file["findings"]]
    assert (status, found) == (2, ["both/k.py", "tpu/k.py", "tpu/old/k.py"])
    assert [problem["path"] for problem in document["problems"]] == ["wrong/k.py", "wrong/old/k.py"]
    assert "unknown key 'selct'; did you mean 'select'?" in error


def test_a_file_that_is_named_can_be_excluded(console: Console) -> None:
    Path("gen/deep").mkdir(parents=True)
    Path("gen/deep/k.py").write_bytes(BROKEN)
    Path("k.py").write_bytes(BROKEN)
    Path("pyproject.toml").write_text("[tool.pallas-fix]\nexclude = ['gen/']\n")
    words = ("--check", "--exclude", "k.py", "gen/deep/k.py", "k.py")
    assert "2 would be fixed" in console.apply(*words)[2]
    status, _, error = console.apply("--force-exclude", *words)
    assert (status, "there is no Python file to look at" in error) == (0, True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("apply", "--select", "TPU0"), ["TPU001", "TPU002", "TPU003", "TPU004"]),
        (("apply", "--ignore", "GPU001,TP"), ["GPU001,TPU", "GPU001,TPU001"]),
        (("config", "--target", "v6"), ["v6e"]),
        (("verify", "--until", "co"), ["compile"]),
        (("apply", "--output", "js"), ["json"]),
        (("apply", "--jax", "0.12"), ["0.12.0.1"]),
        (("explain", "IGN"), ["IGN001"]),
        (("apply", "--sin"), ["--since"]),
    ],
)
def test_what_a_shell_offers(words: tuple[str, ...], offered: list[str]) -> None:
    environment = os.environ | {
        "_PALLAS_FIX_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("pallas-fix", *words)),
        "COMP_CWORD": str(len(words)),
    }
    command = [sys.executable, "-m", "pallas_fix"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    values = [line.partition(",")[2] for line in done.stdout.splitlines()]
    assert values[: len(offered)] == offered


class TestStartUp:
    def modules(self, *words: str) -> set[str]:
        """The modules that a run of the command line has loaded."""
        code = (
            "import sys\nfrom pallas_fix.cli import cli\n"
            f"status = cli.main({list(words)!r}, standalone_mode=False)\n"
            "print(*sys.modules, file=sys.stderr)\nsys.exit(status)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return set(done.stderr.decode().split())

    @pytest.mark.parametrize(
        "words", [("--help",), ("apply", "--help"), ("apply", "-qq", "."), ("rules",)]
    )
    def test_what_nothing_needs_is_not_loaded(self, words: tuple[str, ...]) -> None:
        Path("k.py").write_text("import jax\n")
        loaded = self.modules(*words)
        for heavy in (
            "jax",
            "numpy",
            "libcst",
            "concurrent.futures",
            "multiprocessing",
            "pathspec",
        ):
            assert heavy not in loaded

    def test_a_healthy_kernel_needs_no_libcst_and_no_jax(self, console: Console) -> None:
        Path("k.py").write_bytes(console.fixed(BROKEN))
        loaded = self.modules("apply", "-qq", ".")
        assert "pallas_fix.fixpoint" in loaded
        assert not {"jax", "libcst", "concurrent.futures"} & loaded


class TestOthers:
    def test_rules(self, console: Console) -> None:
        status, out, _ = console.call("rules")
        assert status == 0
        assert [line.split()[0] for line in out.decode().splitlines()] == list(all_rules())

    def test_explain(self, console: Console) -> None:
        assert console.call("explain", "TPU001")[1].startswith(b"# TPU001 vmem-accumulator\n")
        given = b"ValueError: Expected an accumulator ref, got Ref<vmem>{f32[8]}\n\xff"
        status, out, _ = console.call("explain", "-", given=given)
        assert (status, out.splitlines()[0][:6]) == (0, b"TPU001")
        status, out, error = console.call("explain", "TPU0001")
        assert (status, out) == (1, b"")
        assert "nearest: TPU001" in error

    def test_config(self, console: Console, project: Path) -> None:
        Path("pyproject.toml").write_text("[tool.pallas-fix]\nselect = ['TPU001']\n")
        status, out, _ = console.call("config")
        assert status == 0
        lines = out.decode().splitlines()
        assert f"project  {project}" in lines
        assert f"jax      {JAX} (requirements.txt)" in lines
        assert "rules    TPU001 (tool.pallas-fix.select)" in lines

    def test_version(self, console: Console) -> None:
        assert console.call("--version")[1].startswith(b"pallas-fix, version ")

    def test_verify(self, console: Console) -> None:
        Path("k.py").write_text("def g(x):\n    return x.nothing\n")
        words = ("verify", "k.py:g(i32[8])", "--until", "trace", "--target", "v6e")
        status, out, _ = console.call(*words)
        head, imported, traced, why = out.decode().splitlines()
        assert status == 1
        assert head.startswith("g(i32[8]) @ v6e (jax ")
        assert imported.split()[:2] == ["import", "ok"]
        assert traced.split()[:2] == ["trace", "failed"]
        assert "AttributeError" in why
        assert "k.py:2" in why

    @pytest.mark.parametrize(
        ("answers", "until", "asked", "status"),
        [
            ({"import": True, "trace": True, "lower": True, "compile": True}, "device", False, 0),
            ({"import": True, "trace": True, "lower": True, "compile": True}, "device", True, 2),
            ({"import": True, "trace": True, "lower": True, "compile": None}, "device", False, 2),
            ({"import": True, "trace": True, "lower": True}, "lower", True, 0),
            ({"import": True, "trace": False}, "compile", True, 1),
            ({}, "import", True, 2),
        ],
    )
    def test_how_verify_exits(
        self, answers: dict[str, bool | None], until: str, asked: bool, status: int
    ) -> None:
        stages = tuple(StageResult(Stage(name), ok) for name, ok in answers.items())
        results = [CaseResult("f()", "v6e", Side(stages), Side(stages))]
        assert verify_case.status(results, Stage(until), asked) == status

    @pytest.mark.parametrize("case", ["f(i32[8])", "gone.py:f()", "k.py:f(", "k.py:f(x[8])"])
    def test_verify_of_no_case(self, console: Console, case: str) -> None:
        status, out, error = console.call("verify", case)
        assert (status, out) == (2, b"")
        assert error.startswith("error: ")


def test_an_internal_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys\nimport pallas_fix.projects as p\n"
        "def fail(*a): raise RuntimeError('oh\\x1b[2J')\n"
        "p.Projects = fail\nfrom pallas_fix.cli import main\nmain(sys.argv[1:])"
    )
    for words, traceback in ((["config"], False), (["config", "-v"], True)):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "internal error: RuntimeError: oh\\x1b[2J" in done.stderr
        assert ("Traceback" in done.stderr) is traceback
