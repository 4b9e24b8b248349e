"""Recorded cases: files of them, commands that are run before and after, what they launch."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from console import Console
from pallas_fix.config import Options, load
from pallas_fix.projects import Projects
from pallas_fix.pyproject import ConfigError
from pallas_fix.report.account import Account
from pallas_fix.rules import all_rules
from pallas_fix.run import Request, Run
from pallas_fix.verify.casefile import case_file, read_cases
from pallas_fix.verify.cases import Case, parse_case
from pallas_fix.verify.command import Command, inside, last_words
from pallas_fix.verify.commands import Commands, commands_of
from pallas_fix.verify.ends import Limits
from pallas_fix.verify.recorded import Recorded, chosen, read_journal, rebased
from pallas_fix.verify.tree import copy_tree
from pallas_fix.verify.verdict import CaseResult, Level
from pallas_fix.verify.watch import watch

PYTHON = Path(sys.executable)
PROJECT = Path(__file__).parent / "projects" / "attention"
BROKEN = (Path(__file__).parent.parent / "examples" / "tpu_matmul.py").read_text()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is the current folder."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("[tool.pallas-fix]\njax = '0.12.0.1'\n")
    monkeypatch.chdir(root)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return root


@pytest.fixture
def console(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Console:
    return Console(capfdbinary, monkeypatch)


def recorded(text: str, kernel: str = "kernel", files: Sequence[str] = ()) -> Recorded:
    return Recorded(parse_case(text), kernel, "a.py:3", "pytest -q", tuple(files))


class TestCaseFiles:
    def test_are_read_as_they_were_written(self, tmp_path: Path) -> None:
        cases = [
            recorded("a.py:f(bf16[8,128], 'it''s', name=\"\\n\\t\\x7f'\")", files=["a.py", "b.py"]),
            recorded("a.py:f(f32[8,128])", "<lambda>"),
        ]
        file = tmp_path / "cases.toml"
        file.write_text(case_file(cases))
        assert sorted(map(str, read_cases(file))) == sorted(map(str, cases))

    def test_do_not_depend_on_the_order_of_launches(self) -> None:
        cases = [recorded(f"a.py:f(f32[{n},128])", files=[f"{n}.py"]) for n in (16, 8, 16)]
        assert case_file(cases) == case_file(cases[::-1])
        assert case_file(cases).count("[[case]]") == 2

    def test_keep_what_no_command_recorded(self, tmp_path: Path) -> None:
        file = tmp_path / "cases.toml"
        file.write_text("[[case]]\ncase = 'a.py:mine(f32[8])'\n")
        file.write_text(case_file([recorded("a.py:old()")], read_cases(file)))
        file.write_text(case_file([recorded("a.py:new()")], read_cases(file)))
        assert [case.case.entry for case in read_cases(file)] == ["mine", "new"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[[case]]\ncase = 'a.py:f('", "column"),
            ("[[case]]\ncase = 'f()'", "name the file of the entry"),
            ("[[case]]\ncase = 'a.py:f()'\nkernal = 'x'", "did you mean 'kernel'?"),
            ("[[case]]\ncase = 'a.py:f()'\nfiles = 'a.py'\nwhere = 1", "where must be a string"),
            ("[[cases]]\ncase = 'a.py:f()'", "did you mean 'case'?"),
            ("case = 'a.py:f()'", "each case is a table: [[case]]"),
            ("[[case]\n", "is not valid TOML"),
        ],
    )
    def test_tell_what_is_wrong(self, tmp_path: Path, text: str, message: str) -> None:
        file = tmp_path / "cases.toml"
        file.write_text(text)
        with pytest.raises(ConfigError) as told:
            read_cases(file)
        assert message in str(told.value)
        assert str(file) in str(told.value)

    def test_are_part_of_the_settings(self, project: Path, console: Console) -> None:
        (project / "a.py").touch()
        (project / "pallas-fix-cases.toml").write_text(case_file([recorded("a.py:f()")]))
        (project / "more.toml").write_text("[[case]]\ncase = 'a.py:g()'\n")
        with (project / "pyproject.toml").open("a") as file:
            file.write("case-files = ['more.toml']\n")
        status, out, _ = console.call("config")
        assert status == 0
        assert f"1 recorded ones in {project}/pallas-fix-cases.toml" in out.decode()
        assert f"1 recorded ones in {project}/more.toml" in out.decode()

    @pytest.mark.parametrize(
        ("settings", "case", "message"),
        [
            ("case-files = ['no.toml']", "a.py:f()", "there is no file"),
            ("", "gone.py:f()", "there is no file gone.py; record again"),
        ],
    )
    def test_that_are_stale_say_so(
        self, project: Path, settings: str, case: str, message: str
    ) -> None:
        (project / "a.py").touch()
        (project / "pallas-fix-cases.toml").write_text(case_file([recorded(case)]))
        with (project / "pyproject.toml").open("a") as file:
            file.write(settings)
        with pytest.raises(ConfigError, match=message):
            load([project], Options(), all_rules())


class TestChosen:
    def test_the_smallest_of_each_kind_comes_first(self) -> None:
        cases = [recorded(f"a.py:f(f32[{n},128], {k})", "abc"[k]) for n in (8, 64) for k in (0, 1)]
        texts = [str(case) for case in chosen(cases, most=3)]
        assert texts == [f"a.py:f(f32[{n},128], {k})" for n, k in ((8, 0), (8, 1), (64, 0))]

    def test_paths_follow_the_project(self, tmp_path: Path) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "a.py").touch()
        one = Recorded(parse_case("sub/a.py:f()"), "k", "sub/a.py:1", "c", ("sub/a.py", "t.py"))
        moved = rebased(one, tmp_path, tmp_path / "sub")
        assert moved == Recorded(parse_case("a.py:f()"), "k", "a.py:1", "c", ("../t.py", "a.py"))
        assert rebased(one, tmp_path, tmp_path / "other") is None


class TestJournal:
    def test_a_line_that_was_cut_off_is_left_out(self, tmp_path: Path) -> None:
        launch = {
            "event": "launch", "kernel": "k", "where": "a.py:1", "grid": [2], "operands": [],
            "case": "a.py:f(f32[8])", "refused": "", "files": ["a.py"],
        }  # fmt: skip
        refused = launch | {"case": "", "refused": "mesh of g is an object of type Mesh"}
        lines = [launch, launch | {"files": ["b.py"]}, refused, {"event": "ran", "on": "CPU"}]
        journal = tmp_path / "journal"
        journal.write_text("\n".join(map(json.dumps, lines)) + '\n{"event": "lau')
        told = read_journal(journal, "pytest")
        assert told.launches == 2
        assert told.refused == {"mesh of g is an object of type Mesh": 1}
        assert [(str(one.case), one.files) for one in told.recorded] == [
            ("a.py:f(f32[8])", ("a.py", "b.py"))
        ]

    def test_the_test_in_which_pytest_died(self, tmp_path: Path) -> None:
        events: list[dict[str, object]] = [
            {"event": "tests", "run": 1}, {"event": "test", "id": "a"},
            {"event": "tested", "id": "a"}, {"event": "test", "id": "b"},
        ]  # fmt: skip
        journal = tmp_path / "journal"
        journal.write_text("\n".join(map(json.dumps, events)))
        assert read_journal(journal, "pytest").unfinished == "b"
        events += [{"event": "tests", "run": 2}, {"event": "no more tests", "run": 2}]
        journal.write_text("\n".join(map(json.dumps, events)))
        assert read_journal(journal, "pytest").unfinished == ""


class TestCommands:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("python -m pytest", (str(PYTHON), "-m", "pytest")),
            ("python3 'a b.py'", (str(PYTHON), "a b.py")),
            ("true -k 'a and (b or c)'", ("true", "-k", "a and (b or c)")),
            ("python a.py && python b.py", ("/bin/sh", "-c", "python a.py && python b.py")),
            ("X=1 python a.py", ("/bin/sh", "-c", "X=1 python a.py")),
            ("cat tests/test_*.py", ("/bin/sh", "-c", "cat tests/test_*.py")),
        ],
    )
    def test_words(self, text: str, words: tuple[str, ...]) -> None:
        found = Command.parse(text, PYTHON).words
        assert (Path(found[0]).name, *found[1:]) == (Path(words[0]).name, *words[1:])

    def test_pytest_is_that_of_the_project(self, tmp_path: Path) -> None:
        python = tmp_path / "python"
        assert Command.parse("pytest -q", python).words == (str(python), "-m", "pytest", "-q")
        (tmp_path / "pytest").touch(0o755)
        assert Command.parse("pytest -q", python).words == (str(tmp_path / "pytest"), "-q")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("no-such-program -q", "there is no program 'no-such-program'"),
            ("./no-such-file", "there is no program './no-such-file'"),
            ("pytest 'tests", "no closing quotation"),
            ("  ", "the command is empty"),
        ],
    )
    def test_that_cannot_be_run(
        self, project: Path, console: Console, text: str, message: str
    ) -> None:
        (project / "mm.py").write_text(BROKEN)
        for words in (("apply", "--run", text, "."), ("record", text)):
            status, out, error = console.call(*words)
            assert (status, out) == (2, b"")
            assert message in error
            assert error.startswith("error: ")
            assert error.count("\n") == 1
        assert (project / "mm.py").read_text() == BROKEN

    def test_that_a_shell_does_not_find(self, project: Path, console: Console) -> None:
        status, _, error = console.call("record", "true && no-such-program")
        assert status == 2
        assert "error: 'true && no-such-program':" in error

    def test_no_verify_goes_without(self, project: Path, console: Console) -> None:
        status, _, error = console.call("apply", "--no-verify", "--run", "true", ".")
        assert status == 2
        assert "--run and --no-verify exclude each other" in error

    @pytest.mark.parametrize(
        ("output", "said"),
        [
            ("===== 1 failed, 2 passed in 0.12s =====\n", "1 failed, 2 passed"),
            ("3 passed, 1 warning in 61.02s (0:01:01)\nbye\n", "3 passed, 1 warning"),
            ("\x1b[31m1 failed\x1b[0m\x1b[31m in 1.00s\x1b[0m", "1 failed"),
            ("Traceback\n  File /t/p/a.py\nValueError: /t/p/a.py\n\n", "ValueError: a.py"),
            ("\n", ""),
        ],
    )
    def test_last_words(self, output: str, said: str) -> None:
        assert last_words(output, Path("/t/p")) == said

    def test_paths_of_the_project_lead_to_the_copy(self, tmp_path: Path) -> None:
        origin, tree = tmp_path / "origin", tmp_path / "tree"
        (tree / "tests").mkdir(parents=True)
        (tree / "tests" / "a.py").touch()
        text = f"{origin}/tests/a.py::test_x {origin}/.venv/bin/python x{origin}/tests"
        assert inside(text, origin, tree) == text.replace(f"{origin}/tests/a", f"{tree}/tests/a")


class TestCopies:
    def test_what_is_in_them(self, tmp_path: Path) -> None:
        root, tree = tmp_path / "root", tmp_path / "tree"
        for name in ("pkg/a.py", "run.sh", ".git/config", "env/pyvenv.cfg", "env/lib.py"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("1")
        (root / "run.sh").chmod(0o755)
        (tmp_path / "data").mkdir()
        (root / "out").symlink_to(tmp_path / "data")
        (root / "in").symlink_to("pkg")
        with (root / "large").open("wb") as file:
            file.truncate(33 << 20)
        copied = copy_tree(root, tree, {Path("pkg/a.py"): b"2"})
        assert copied.missing == 1
        assert copied.python == (Path("pkg/a.py"),)
        assert sorted(os.listdir(tree)) == ["in", "out", "pkg", "run.sh"]
        assert (tree / "in" / "a.py").read_text() == "2"
        assert (tree / "in").resolve() == tree / "pkg"
        assert (tree / "out").resolve() == tmp_path / "data"
        assert os.access(tree / "run.sh", os.X_OK)
        assert (root / "pkg" / "a.py").read_text() == "1"

    def test_what_a_command_does_stays_in_them(self, project: Path) -> None:
        (project / "a.py").write_text("x = 1\n")
        script = "open('a.py', 'a').write('y = 2'); open('new', 'w')"
        run_all(project, [f'python -c "{script}"'])
        assert (project / "a.py").read_text() == "x = 1\n"
        assert not (project / "new").exists()


def run_all(root: Path, texts: Sequence[str], targets: Sequence[str] = ()) -> Commands:
    commands = commands_of(texts, root, PYTHON, targets, lambda text: None)
    commands.first()
    return commands


class TestWatch:
    def ended(self, tmp_path: Path, script: str, limits: Limits) -> tuple[int, str, str]:
        environment = {"PATH": os.environ["PATH"], "MARK": str(tmp_path)}
        end = watch([str(PYTHON), "-c", script], tmp_path, environment, limits, "MARK")
        return end.code, end.reason, end.output

    def test_an_end(self, tmp_path: Path) -> None:
        script = "import sys; print('a', flush=True); sys.stderr.write('b'); sys.exit(3)"
        assert self.ended(tmp_path, script, Limits()) == (3, "", "a\nb")

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("import time; time.sleep(60)", "wall"),
            ("while True: print('x' * 1000)", "output"),
            ("import os; os.close(1); os.close(2); import time; time.sleep(60)", "wall"),
        ],
    )
    def test_limits(self, tmp_path: Path, script: str, reason: str) -> None:
        limits = Limits(wall=2, output=1 << 20)
        code, why, _ = self.ended(tmp_path, script, limits)
        assert (code, why) == (-9, reason)

    def test_what_it_started_ends_with_it(self, tmp_path: Path) -> None:
        child = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(__import__('os').getpid()))"
        script = (
            "import subprocess, sys, time, os; subprocess.Popen([sys.executable, '-c', "
            f"{child + '; import time; time.sleep(60)'!r}], start_new_session=True)\n"
            f"while not os.path.exists({str(tmp_path / 'pid')!r}): time.sleep(0.01)\n"
            "time.sleep(0.2)"
        )
        assert self.ended(tmp_path, script, Limits())[:2] == (0, "")
        pid = int((tmp_path / "pid").read_text())
        deadline = time.monotonic() + 10
        while os.path.exists(f"/proc/{pid}/exe") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{pid}/exe")


class NoCases:
    """A ladder on which no case says anything."""

    def __init__(self) -> None:
        self.asked: list[Case] = []

    def check(
        self,
        root: Path,
        path: Path,
        before: str,
        after: str,
        cases: Sequence[Case],
        targets: Sequence[str],
        bound: float | None = None,
    ) -> list[CaseResult]:
        self.asked += cases
        return []


def applied(root: Path, commands: Sequence[str], ladder: NoCases) -> Account:
    projects = Projects([root], Options(python=PYTHON), all_rules())
    request = Request(projects, [root], commands=commands)
    return Run(request, all_rules(), ladder=lambda: ladder).go()


class TestStatus:
    """`python says.py` looks at the text, so that no jax is needed."""

    def applied(self, project: Path, script: str) -> Account:
        (project / "mm.py").write_text(BROKEN)
        (project / "says.py").write_text(f"text = open('mm.py').read()\n{script}\n")
        return applied(project, ["python says.py"], NoCases())

    def test_one_that_got_worse_refutes(self, project: Path) -> None:
        account = self.applied(project, "assert 'ACC' not in text, 'I saw it'")
        [entry] = account.entries
        assert entry.verdict is not None
        assert entry.verdict.level is Level.REFUTED
        assert entry.verdict.evidence == (
            "$ python says.py worked before, now fails at run for tpu7x: "
            "exit status 1: AssertionError: I saw it"
        )
        assert (project / "mm.py").read_text() == BROKEN

    def test_one_that_got_better_only_says_so_of_what_it_ran(self, project: Path) -> None:
        account = self.applied(project, "assert 'ACC' in text, 'not yet'")
        [entry] = account.entries
        assert entry.verdict is not None
        assert entry.verdict.level is Level.UNVERIFIED
        assert entry.verdict.evidence == "there is no case for it"
        assert entry.case
        assert account.notes == (
            "$ python says.py: exit status 1 (AssertionError: not yet); it launched no kernel",
        )

    def test_one_that_ran_the_functions_is_evidence(self, project: Path) -> None:
        script = (
            "import os\n"
            "for name in ('matmul', 'matmul_kernel'):\n"
            "    code = f'def {name}(): pass\\n{name}()'\n"
            "    exec(compile(code, os.path.abspath('mm.py'), 'exec'))\n"
            "assert 'ACC' in text, 'not yet'\n"
            "print('2 passed in 0.1s')\n"
        )
        [entry] = self.applied(project, script).entries
        assert entry.verdict is not None
        assert entry.verdict.level is Level.UNVERIFIED
        assert entry.verdict.evidence == (
            "there is no case for it; `$ python says.py` failed before (AssertionError: not yet), "
            "passes now (2 passed)"
        )
        assert entry.case

    def test_one_that_fails_before_and_after_says_nothing(self, project: Path) -> None:
        account = self.applied(project, "raise SystemExit('no')")
        [entry] = account.entries
        assert entry.verdict is not None
        assert entry.verdict.level is Level.UNVERIFIED
        assert (project / "mm.py").read_text() != BROKEN

    def test_files_that_were_decided_are_there_for_the_next(self, project: Path) -> None:
        (project / "a.py").write_text(BROKEN)
        (project / "b.py").write_text(BROKEN)
        (project / "says.py").write_text(
            "texts = [open(name).read() for name in ('a.py', 'b.py')]\n"
            "assert all('ACC' in text for text in texts) or 'ACC' not in texts[1]\n"
        )
        for write in (False, True):
            projects = Projects([project], Options(python=PYTHON), all_rules())
            request = Request(projects, [project], commands=["python says.py"], write=write)
            account = Run(request, all_rules(), ladder=NoCases).go()
            assert [entry.verdict and entry.verdict.level for entry in account.entries] == [
                Level.UNVERIFIED,
                Level.UNVERIFIED,
            ]


CALLS = [
    "Module.of_class(f32[48,128])",
    "Module.static(f32[40,128])",
    "custom(f32[24,128])",
    "custom_backward((24, 128), f32[24,128])",
    "jitted(f32[16,128], 2)",
    "jitted(f32[56,128], 7)",
    "launch(f32[8,128])",
    "launch(f32[8,128], dtype=dtype<i8>)",
    "launch(f32[8,128], dtype=jnp.bfloat16)",
    "launch(f32[8,128], factor=3)",
    "rebinding(f32[8,128], 1.0, f32[16,128], factor=4)",
    "rebinding(f32[8,128], 2.5)",
    "tree({'pair': (f32[8,128], f32[8,128]), 'one': bf16[]}, i32[2]:range(3,8))",
]

TESTS = """\
import multiprocessing
import os
import subprocess
import sys
from threading import Thread

import jax.numpy as jnp
import pytest

from kernels import launch


def one(size):
    launch(jnp.ones((size, 128)))


def test_first():
    one(8)


def test_abort():
    one(16)
    os.abort()


def test_exit():
    os._exit(3)


def test_spawned():
    child = multiprocessing.get_context("spawn").Process(target=one, args=(24,))
    child.start()
    child.join()
    assert child.exitcode == 0


def test_started():
    code = "import test_all; test_all.one(32)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_threads():
    threads = [Thread(target=one, args=(size,)) for size in (40, 48)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class TestMore:
    @pytest.mark.parametrize("size", [56, 64])
    def test_sizes(self, size):
        one(size)
"""


def copied(name: str, project: Path) -> None:
    shutil.copytree(PROJECT.parent / name, project, dirs_exist_ok=True)


@pytest.mark.compile
class TestLaunches:
    def test_of_all_kinds_of_calls(self, project: Path, console: Console) -> None:
        copied("calls", project)
        status, out, error = console.call("record", "python main.py")
        assert (status, out) == (0, b"")
        cases = read_cases(project / "pallas-fix-cases.toml")
        assert [str(one.case).removeprefix("kernels.py:") for one in cases] == CALLS
        assert {(one.kernel, one.where) for one in cases} == {("body", "kernels.py:11")}
        assert error.splitlines()[1:] == [
            "$ python main.py: exit status 0; 16 launches of 1 kernel recorded, "
            "3 of them as no case",
            "no case can be written for 3 launches:",
            "    1 x Module.method is a method",
            "    1 x config of configured is an object of type Config",
            "    1 x make.<locals>.run is defined inside of another function",
            f"wrote 13 cases to {project / 'pallas-fix-cases.toml'}",
        ]
        [result] = [
            result
            for result in verified(console, "kernels.py:launch(f32[8,128], dtype=dtype<i8>)")
            if result["stage"] == "run"
        ]
        assert result["ok"] is True

    def test_in_processes_of_all_kinds_and_after_crashes(self, project: Path) -> None:
        copied("calls", project)
        (project / "test_all.py").write_text(TESTS)
        commands = run_all(project, ["pytest -q -p no:cacheprovider test_all.py"])
        [ran] = commands.first()
        assert ran.error == "SIGABRT"
        assert ran.said == (
            "test_all.py::test_abort and 1 more ended the process; "
            "the others: 5 passed, 3 deselected"
        )
        sizes = [one.size // 128 for one in commands.recorded]
        assert sorted(sizes) == [8, 16, 24, 32, 40, 48, 56, 64]

    def test_under_xdist(self, project: Path) -> None:
        copied("calls", project)
        (project / "test_all.py").write_text(TESTS)
        commands = run_all(project, ["pytest -q -n 2 test_all.py -k 'not abort and not exit'"])
        [ran] = commands.first()
        assert (ran.error, ran.said) == ("", "6 passed")
        assert sorted(one.size // 128 for one in commands.recorded) == [8, 24, 32, 40, 48, 56, 64]

    def test_a_process_without_pallas_does_not_import_jax(self, project: Path) -> None:
        (project / "sitecustomize.py").write_text("print('own')\n")
        (project / "a.py").write_text(
            "import sys\n"
            "assert not {'jax', 'numpy'} & sys.modules.keys()\n"
            "assert sys.modules['sitecustomize'].__file__.startswith(sys.path[0])\n"
            "assert 'capture' not in ''.join(sys.path)\n"
        )
        [ran] = run_all(project, ["PYTHONPATH=$PYTHONPATH:. python a.py"]).first()
        assert (ran.error, ran.said) == ("", "own")

    def test_an_installed_project_is_that_of_the_copy(self, project: Path, tmp_path: Path) -> None:
        (project / "lib").mkdir()
        (project / "lib" / "mod.py").write_text("")
        (project / "a.py").write_text(
            "import mod, os\nassert mod.__file__.startswith(os.getcwd()), mod.__file__\n"
        )
        site = tmp_path / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(
            "import importlib.machinery, importlib.util, sys\n"
            "class Editable:\n"
            "    def find_spec(self, name, path, target=None):\n"
            "        if name == 'mod':\n"
            "            return importlib.util.spec_from_file_location(\n"
            f"                name, {str(project / 'lib' / 'mod.py')!r})\n"
            "sys.meta_path.append(Editable())\n"
        )
        [ran] = run_all(project, [f"PYTHONPATH=$PYTHONPATH:{site} python a.py"]).first()
        assert (ran.error, ran.said) == ("", "")


def verified(console: Console, case: str) -> list[dict[str, object]]:
    """The stages of a case."""
    _, out, _ = console.call("verify", "--until", "run", "--output", "json", case)
    stages: list[dict[str, object]] = json.loads(out)["cases"][0]["after"]["stages"]
    return stages


@pytest.mark.newest
@pytest.mark.compile
class TestProject:
    def test_is_recorded_verified_and_written(self, project: Path, console: Console) -> None:
        copied("attention", project)
        status, out, error = console.call(
            "apply", "--run", "pytest -q tests/kernels", "--output", "json", "."
        )
        assert status == 0, error
        document = json.loads(out)
        assert document["notes"] == [
            "$ pytest -q tests/kernels: exit status 1 (4 failed, 3 passed); "
            "6 launches of 4 kernels recorded"
        ]
        [file] = document["files"]
        [finding] = file["findings"]
        assert (finding["code"], finding["state"], finding["level"]) == ("TPU001", "fixed", "equal")
        assert finding["evidence"].endswith(
            "; `$ pytest -q tests/kernels` failed before (4 failed, 3 passed), "
            "passes now (7 passed)"
        )
        assert [case["case"] for case in finding["cases"]] == [
            "matmul(bf16[32,256], bf16[256,256])",
            "matmul(bf16[64,256], bf16[256,256], block=64)",
            "matmul(bf16[64,256], bf16[256,256])",
            "$ pytest -q tests/kernels",
        ]
        assert finding["cases"][-1]["command"].endswith(
            f"--run 'pytest -q tests/kernels' {file['path']}"
        )
        text = (project / "src" / "shapes_lab" / "kernels" / "matmul.py").read_text()
        assert "pltpu.ACC(0)" in text
        assert sorted(os.listdir(project)) == ["pyproject.toml", "scripts", "src", "tests"]

    def test_kept_cases_verify_without_the_command(self, project: Path, console: Console) -> None:
        copied("attention", project)
        bench = "PYTHONPATH=$PYTHONPATH:src python scripts/bench.py"
        status, _, error = console.call("record", bench)
        assert status == 1
        assert "Expected an accumulator ref" in error
        status, out, _ = console.call("apply", "--output", "json", ".")
        assert status == 0
        [finding] = json.loads(out)["files"][0]["findings"]
        assert finding["level"] == "equal"
        assert [case["case"] for case in finding["cases"]] == [
            "matmul(bf16[128,256], bf16[256,256])"
        ]
        before = (project / "pallas-fix-cases.toml").read_text()
        assert console.call("record", bench)[0] == 0
        assert "no longer launched" not in before

    def test_tpu_and_gpu_kernels_run_in_one_process(self, project: Path) -> None:
        kernel = "        pl.with_scoped(pltpu.ACC(0)((BLOCK_M, N), jnp.float32))(matmul_kernel),\n"
        repaired = BROKEN.replace("        matmul_kernel,\n", kernel)
        scratch = "        scratch_shapes=[pltpu.VMEM((BLOCK_M, N), jnp.float32)],\n"
        (project / "mm.py").write_text(repaired.replace(scratch, ""))
        text = (PROJECT.parent.parent.parent / "examples" / "gpu_wgmma_scale.py").read_text()
        (project / "wg.py").write_text(text.replace(".reshape(N, M)", ""))
        (project / "main.py").write_text(
            "import jax.numpy as jnp\n"
            "import mm, wg\n"
            "x = jnp.ones((64, 256), jnp.bfloat16)\n"
            "assert (mm.matmul(x, jnp.ones((256, 256), jnp.bfloat16)) == 256).all()\n"
            "a = jnp.ones((64, 64), jnp.float16)\n"
            "assert (wg.scaled_matmul(a, jnp.ones((64, 128), jnp.float16)) == 8).all()\n"
        )
        commands = run_all(project, ["python main.py"])
        [ran] = commands.first()
        assert (ran.error, ran.said) == ("", "")
        assert ran.told.ran_on == ["CPU (interpreted)", "CPU (emulated MXU)"]
        assert [(str(one.case), one.kernel, one.where) for one in commands.recorded] == [
            ("mm.py:matmul(bf16[64,256], bf16[256,256])", "matmul_kernel", "mm.py:13"),
            ("wg.py:scaled_matmul(f16[64,64], f16[64,128])", "scaled_matmul_kernel", "wg.py:12"),
        ]
