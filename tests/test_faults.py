"""Code that does what no worker should survive: one line for each, and the next job is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from climbing import climb, names, write
from kernels import MXU
from pallas_fix.targets import find_target
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.ends import End, explain
from pallas_fix.verify.environment import environment
from pallas_fix.verify.judge import judge
from pallas_fix.verify.ladder import Ladder, Limits
from pallas_fix.verify.verdict import CaseResult, Level, Stage, StageResult
from pallas_fix.verify.worker import pulse
from pallas_fix.verify.worker.processes import descendants

MXU_CASE = "matmul(bf16[64,256], bf16[256,256])"
CASE = "f(f32[8])"


@pytest.fixture(scope="module")
def ladder() -> Iterator[Ladder]:
    limits = Limits(wall=60, output=1 << 20, memory=8 << 30, file=1 << 20)
    with Ladder(Path(sys.executable), until=Stage.TRACE, limits=limits) as ladder:
        yield ladder


@pytest.fixture(scope="module")
def hasty() -> Iterator[Ladder]:
    with Ladder(Path(sys.executable), until=Stage.TRACE, limits=Limits(wall=3)) as ladder:
        yield ladder


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """After every test all that runs are warm workers, none with a process of its own."""
    yield
    parents = {pid: parent(pid) for pid in descendants()}
    assert not [pid for pid, above in parents.items() if above in parents]


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def running(pid: int) -> bool:
    """True if a process of that number runs and is no zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def last(ladder: Ladder, root: Path, text: str) -> StageResult:
    return climb(ladder, root, text, CASE).after.stages[-1]


def fault(ladder: Ladder, root: Path, text: str) -> StageResult:
    """What ends the job, after which the same worker does the next one as if nothing had been."""
    result = last(ladder, root, text)
    assert result.ok is False, result
    assert "\n" not in result.message
    healthy = last(ladder, root, "def f(x): return x\n")
    assert (healthy.stage, healthy.ok) == (Stage.TRACE, True), healthy
    return result


@pytest.mark.newest
@pytest.mark.compile
def test_an_abort_of_the_compiler_is_a_result(tmp_path: Path) -> None:
    text = MXU.replace("mxu_index=0", "mxu_index=7")
    with Ladder(Path(sys.executable), until=Stage.COMPILE) as ladder:
        failure = climb(ladder, tmp_path, text, MXU_CASE).after.stages[-1]
        assert climb(ladder, tmp_path, MXU, MXU_CASE).after.stages[-1].ok
    assert (failure.stage, failure.ok, failure.error) == (Stage.COMPILE, False, "SIGABRT")
    assert "Check failed" in failure.message
    assert failure.message.endswith("(during compile)")


@pytest.mark.compile
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError", "No module named"),
        ("x = (", "SyntaxError", "was never closed"),
        ("import sys; sys.exit(3)", "SystemExit", "the code called sys.exit(3)"),
        ("import os; os._exit(0)", "Exit", "ended the process with status 0 (during import)"),
    ],
)
def test_faults_of_an_import(
    ladder: Ladder, tmp_path: Path, text: str, error: str, message: str
) -> None:
    failure = fault(ladder, tmp_path, text + "\n")
    assert (failure.stage, failure.error) == (Stage.IMPORT, error)
    assert message in failure.message
    if error != "Exit":
        assert failure.where == "mod.py:1"


@pytest.mark.compile
@pytest.mark.parametrize(
    ("text", "error", "message", "line"),
    [
        ("def f(x): raise SystemExit", "SystemExit", "the code called sys.exit()", 1),
        ("def f(x): import os; os._exit(4)", "Exit", "status 4 (during trace)", 0),
        ("def f(x): import os; os.abort()", "SIGABRT", "crashed with SIGABRT (during trace)", 1),
        ("import ctypes\ndef f(x): ctypes.string_at(0)", "SIGSEGV", "crashed with SIGSEGV", 2),
        ("def f(x): import os; os.kill(os.getpid(), 9)", "SIGKILL", "by its own code or from", 0),
        ("def f(x): import os; os.kill(os.getpid(), 19)", "Stopped", "stopped its own", 0),
        ("def f(x): import os; os.kill(-1, 9)", "PermissionError", "not permitted", 1),
        ("def f(x): raise KeyboardInterrupt", "KeyboardInterrupt", "", 1),
        ("class E(BaseException): pass\ndef f(x): raise E('why')", "E", "why", 2),
        ("def f(x): return bytearray(1 << 36)", "MemoryError", "memory limit", 1),
        ("def f(x):\n while True: print('flood' * 999)", "OutputLimit", "more than 1 MB", 0),
        ("def f(x): return f(x)", "RecursionError", "", 1),
        ("def f(x): return g(x)", "NameError", "name 'g' is not defined", 1),
        ("def g(x): pass", "AttributeError", "the file has no 'f'", 0),
        ("def f(x): return input()", "EOFError", "", 1),
        ("def f(x): open('big', 'wb').truncate(1 << 21)", "OSError", "File too large", 1),
        ("def f(x): raise ValueError('x' * (1 << 27))", "ValueError", "xxx", 1),
        (
            "class E(Exception):\n def __str__(self): raise SystemExit\ndef f(x): raise E",
            "E",
            "the message of this error cannot be printed",
            3,
        ),
        (
            "import os\ndef f(x): os.closerange(0, 1 << 16); return x",
            "Protocol",
            "the code closed a file of the worker",
            0,
        ),
        (
            """\
            import os
            from contextlib import suppress
            def f(x):
                for number in range(3, 1 << 13):
                    with suppress(OSError):
                        os.write(number, b"noise\\n")
                return x""",
            "Protocol",
            "the code wrote to a file of the worker",
            0,
        ),
    ],
)
def test_faults(
    ladder: Ladder, tmp_path: Path, text: str, error: str, message: str, line: int
) -> None:
    failure = fault(ladder, tmp_path, dedent(text) + "\n")
    assert (failure.stage, failure.error) == (Stage.TRACE, error)
    assert message in failure.message
    assert len(failure.message) <= 1200
    if line:
        assert failure.where == f"mod.py:{line}"


@pytest.mark.compile
def test_a_fork_bomb_ends(ladder: Ladder, tmp_path: Path) -> None:
    text = "import os\ndef f(x):\n    while True: os.fork()\n"
    failure = fault(ladder, tmp_path, text)
    assert failure.error == "ProcessLimit"
    assert failure.message == "it had more than 128 processes, so it was stopped (during trace)"


@pytest.mark.compile
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(600)",
        "import ctypes; ctypes.PyDLL(None).sleep(600)",  # and nobody else may run
    ],
)
def test_a_hang_has_a_line(hasty: Ladder, tmp_path: Path, code: str) -> None:
    failure = fault(hasty, tmp_path, f"def wait():\n    {code}\ndef f(x):\n    wait()\n")
    assert (failure.stage, failure.error) == (Stage.TRACE, "Timeout")
    assert failure.message == "no end after 3 s, so the process was stopped (during trace)"
    assert failure.where == "mod.py:2"


@pytest.mark.compile
@pytest.mark.parametrize(
    "text",
    [
        "import atexit, threading, time\n"
        "atexit.register(lambda: 1 / 0)\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "def f(x): return x\n",
        "import json, os, sys, time\n"
        "json.dumps = json.loads = os.write = os._exit = os.getpid = time.perf_counter = None\n"
        "sys.stdout = sys.stderr = None\n"
        "def f(x): return x\n",
        "import os, shutil\nshutil.rmtree(os.getcwd())\ndef f(x): return x\n",
        "import os\ndef f(x):\n    os.fork()\n    return x\n",
        "import os, resource\n"
        "def f(x):\n"
        "    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "    return x\n",
    ],
    ids=["exit", "patches", "folder", "fork", "files"],
)
def test_what_does_no_harm(ladder: Ladder, tmp_path: Path, text: str) -> None:
    result = climb(ladder, tmp_path, text, CASE)
    assert names(result.after.stages) == ["import", "trace"], result.after.stages[-1]
    assert last(ladder, tmp_path, "def f(x): return x\n").ok


@pytest.mark.compile
def test_children_end_with_the_job_however_they_hide(ladder: Ladder, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    text = f"""\
    import os, signal, subprocess, sys, time
    def f(x):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.setsid()
            if os.fork() == 0:
                with open({str(note)!r}, "w") as file:
                    file.write(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        while not os.path.exists({str(note)!r}):
            time.sleep(0.01)
        return x
    """
    result = climb(ladder, tmp_path, text, CASE)
    assert names(result.after.stages) == ["import", "trace"], result.after.stages[-1]
    assert not running(int(note.read_text()))


def test_a_job_that_fills_the_disk_or_waits_for_itself_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = iter([8 << 30, 8 << 30, 1 << 20, 8 << 30])
    monkeypatch.setattr(pulse, "_free", lambda folder: next(free))
    monkeypatch.setattr(pulse, "_PERIOD", 0.0)
    child = subprocess.Popen(["sleep", "600"])
    task = {"folder": str(tmp_path), "mode": "run", "limits": {"processes": 99}}
    seen = pulse.Pulse(child.pid, task)
    assert [seen.trouble(), seen.trouble()] == ["", "disk"]
    monkeypatch.setattr(pulse, "STUCK", 0.0)
    assert seen.trouble() == "stuck"
    child.kill()
    child.wait()
    assert explain(End(-9, "disk", ""), Limits()) == (
        "DiskLimit",
        "it fills the disk, so it was stopped",
    )


@pytest.mark.compile
def test_there_is_no_network(ladder: Ladder, tmp_path: Path) -> None:
    lookup = "import urllib.request\ndef f(x): urllib.request.urlopen('http://192.0.2.1')\n"
    failure = fault(ladder, tmp_path, lookup)
    assert "the worker has no network" in failure.message
    child = """\
    import socket, subprocess, sys
    def f(x):
        socket.socketpair()
        socket.socket(socket.AF_UNIX)
        code = "import socket; socket.socket()"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        raise RuntimeError(ran.stderr.strip().splitlines()[-1])
    """
    assert fault(ladder, tmp_path, child).message == (
        "PermissionError: [Errno 13] Permission denied"
    )


@pytest.mark.compile
def test_modules_of_the_user_named_like_others(tmp_path: Path) -> None:
    own = ("chips", "child", "job", "json", "numbers", "report", "select", "serve", "zipfile")
    write(tmp_path, {f"{name}.py": "OWN = True\n" for name in own})
    text = """\
    import job, report, serve
    def f(x):
        return x * 2 if job.OWN and report.OWN and serve.OWN else None
    """
    with Ladder(Path(sys.executable), until=Stage.RUN) as ladder:
        result = climb(ladder, tmp_path, text, CASE, before=dedent(text) + "\n")
    assert result.after.stages[-1].ok, result.after.stages[-1]
    [compared] = result.compared
    assert compared.same


@pytest.mark.compile
def test_the_home_of_a_job_goes_with_it(ladder: Ladder, tmp_path: Path) -> None:
    note = tmp_path / "home"
    text = f"""\
    import os, pathlib, tempfile
    def f(x):
        home = pathlib.Path.home()
        assert tempfile.gettempdir() == str(home)
        assert not os.listdir(home)
        (home / "full" / "deep").mkdir(parents=True)
        (home / "full" / "deep" / "file").write_text("x")
        (home / "full" / "deep").chmod(0o500)
        (home / "full").chmod(0)
        pathlib.Path({str(note)!r}).write_text(str(home))
        return x
    """
    result = climb(ladder, tmp_path, text, CASE)
    assert names(result.after.stages) == ["import", "trace"], result.after.stages[-1]
    assert not Path(note.read_text()).exists()


@pytest.mark.compile
def test_the_users_files_and_secrets_stay_out_of_reach(
    ladder: Ladder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """\
    import os, pathlib, sys
    def f(x):
        pathlib.Path(__file__).write_text("")
        pathlib.Path("new").write_text("")
        assert "SECRET_TOKEN" not in os.environ
        assert pathlib.Path.home() != pathlib.Path("/root")
        assert not [path for path in sys.path if path.endswith("verify/worker")]
        return x
    """
    monkeypatch.setenv("SECRET_TOKEN", "x")
    result = climb(ladder, tmp_path, text, CASE)
    assert names(result.after.stages) == ["import", "trace"], result.after.stages[-1]
    assert (tmp_path / "mod.py").read_text() == dedent(text)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("device", [False, True])
def test_the_environment_has_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: bool
) -> None:
    secrets = """
        AWS_SECRET_ACCESS_KEY HF_TOKEN GITHUB_TOKEN SSH_AUTH_SOCK HTTPS_PROXY https_proxy
        WANDB_API_KEY GOOGLE_APPLICATION_CREDENTIALS KUBECONFIG PIP_INDEX_URL LD_PRELOAD
    """.split()
    for name in secrets:
        monkeypatch.setenv(name, "hidden")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_max_hlo_modules=1")
    seen = environment(find_target("tpu7x"), tmp_path, device)
    assert "hidden" not in seen.values()
    assert "--xla_dump_max_hlo_modules=1" in seen["XLA_FLAGS"].split()
    assert seen["HOME"] == seen["TMPDIR"] == str(tmp_path)


@pytest.mark.compile
def test_a_flag_that_xla_does_not_know_is_no_fault_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")
    text = "import jax.numpy as jnp\nN = jnp.ones(8)\ndef f(x): return x\n"
    with Ladder(Path(sys.executable), until=Stage.TRACE) as ladder:
        result = climb(ladder, tmp_path, text, CASE)
    [stage] = result.after.stages
    assert stage.ok is None
    assert stage.message == (
        "stage not available: correct XLA_FLAGS or LIBTPU_INIT_ARGS: "
        "Unknown flag in XLA_FLAGS: --xla_no_such_flag=1"
    )
    assert judge(["f"], [result]).level is Level.UNVERIFIED


def test_an_interrupt_does_not_wait_for_a_worker_that_starts(tmp_path: Path) -> None:
    """The interpreter, a script in its place, takes longer to import jax than anybody waits."""
    started = tmp_path / "started"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ntouch '{started}'\nexec sleep 600\n")
    python.chmod(0o755)
    write(tmp_path, {"mod.py": "def f(x): ...\n"})
    ladder = Ladder(python)

    def climb() -> list[CaseResult]:
        text = (tmp_path / "mod.py").read_text()
        return ladder.check(tmp_path, tmp_path / "mod.py", text, text, [parse_case(CASE)], ["v6e"])

    with ThreadPoolExecutor() as pool:
        answer = pool.submit(climb)
        while not started.exists():
            time.sleep(0.05)
        ladder.close()
        [result] = answer.result(timeout=60)
    [stage] = result.after.stages
    assert (stage.stage, stage.ok) == (Stage.IMPORT, None)


@pytest.mark.compile
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_tool(tmp_path: Path, number: signal.Signals) -> None:
    note = tmp_path / "pids"
    write(
        tmp_path,
        {
            "mod.py": f"""\
            import os, time
            def f(x):
                read, write = os.pipe()
                if os.fork() == 0:
                    os.setsid()
                    os.write(write, str(os.getpid()).encode())
                    time.sleep(600)
                hidden = os.read(read, 99).decode()
                with open({str(note)!r}, "w") as file:
                    file.write(f"{{os.getpid()}} {{os.getppid()}} {{hidden}}")
                time.sleep(600)
            """
        },
    )
    program = """\
    import sys
    from pathlib import Path
    from pallas_fix.verify.cases import parse_case
    from pallas_fix.verify.ladder import Ladder
    root = Path(sys.argv[1])
    text = (root / "mod.py").read_text()
    with Ladder(Path(sys.executable)) as ladder:
        ladder.check(root, root / "mod.py", text, text, [parse_case("f(f32[8])")], ["v6e"])
    """
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(program), str(tmp_path)],
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    while process.poll() is None and not (note.exists() and note.read_text()):
        time.sleep(0.05)
    pids = list(map(int, note.read_text().split()))
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert (b"KeyboardInterrupt" in errors) == (number is signal.SIGINT)
    deadline = time.monotonic() + 60
    while any(map(running, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if running(pid)]
