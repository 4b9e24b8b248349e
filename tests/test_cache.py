"""What is remembered of jobs, when it counts, and that nothing in the folder can do harm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pallas_fix.targets import TARGETS
from pallas_fix.verify import installed
from pallas_fix.verify.cache import Cache, default_folder
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.jobs import Job
from pallas_fix.verify.ladder import Ladder
from pallas_fix.verify.process import Outcome
from pallas_fix.verify.verdict import CaseResult, Side, Stage, StageResult

pytestmark = pytest.mark.compile

TEXT = """\
from helper import SCALE


def f(x):
    return x * SCALE
"""

Check = Callable[..., CaseResult]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Verifies a small project with a cache, each time in a ladder of its own."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "helper.py").write_text("SCALE = 2\n")
    (root / "mod.py").write_text(TEXT)

    def run(
        *,
        before: str = TEXT,
        after: str = TEXT,
        case: str = "f(f32[8])",
        target: str = "v6e",
        until: Stage = Stage.RUN,
    ) -> CaseResult:
        cache = Cache(tmp_path / "cache")
        with Ladder(Path(sys.executable), until=until, cache=cache) as ladder:
            [result] = ladder.check(
                root, root / "mod.py", before, after, [parse_case(case)], [target]
            )
        return result

    return run


def cached(side: Side) -> list[bool]:
    assert side.stages
    return [stage.cached for stage in side.stages]


def entries(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "cache").glob("verdicts/??/*") if path.is_file()]


def test_the_second_run_starts_no_worker(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    first = check()
    assert not any(cached(first.after))

    def start(*arguments: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr("pallas_fix.verify.workers.Worker", start)
    second = check()
    assert all(cached(second.after))
    assert second.after.entered == first.after.entered
    assert second.tools == first.tools
    assert [stage.seconds for stage in second.after.stages] == [
        stage.seconds for stage in first.after.stages
    ]


def test_numbers_are_compared_where_both_are_known(check: Check) -> None:
    other = TEXT.replace("x * SCALE", "x * SCALE + 1")
    first = check(after=other)
    second = check(after=other)
    assert all(cached(second.before))
    assert second.compared == first.compared
    assert second.compared[0].same is False
    assert "8 of 8 numbers differ" in second.compared[0].message


def test_what_makes_an_answer_old(check: Check, tmp_path: Path) -> None:
    check()
    assert not any(cached(check(case="f(f32[16])").after))
    assert not any(cached(check(target="v5e").after))
    other = TEXT.replace("x * SCALE", "SCALE * x")
    assert not any(cached(check(before=other, after=other).after))
    assert all(cached(check().after))
    (tmp_path / "project" / "helper.py").write_text("SCALE = 3\n")
    assert not any(cached(check().after))


def test_other_packages_and_other_code_of_ours_count(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    monkeypatch.setattr(installed, "_code", lambda: "another")
    installed._installed.cache_clear()
    assert not any(cached(check().after))
    installed._installed.cache_clear()


@pytest.mark.parametrize(
    "text",
    [
        "import os\ndef f(x): os._exit(3)\n",
        "import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGKILL)\n",
    ],
)
def test_what_depends_on_the_moment_is_not_kept(check: Check, tmp_path: Path, text: str) -> None:
    check(before=text, after=text)
    assert entries(tmp_path) == []


def test_runs_at_once_do_not_disturb_each_other(check: Check, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: check(), range(2)))
    assert [stage.ok for result in results for stage in result.after.stages] == [True] * 10
    assert all(cached(check().after))
    assert not [path for path in entries(tmp_path) if path.name.startswith("new-")]


class Kept:
    """A cache of answers that no worker gave, to jobs that differ in their entry."""

    def __init__(self, folder: Path) -> None:
        self.cache = Cache(folder)
        self._known = Path(sys.executable), TARGETS["v6e"]

    def keep(self, entry: str, steps: int) -> None:
        answer = Outcome([StageResult(Stage.RUN, True)], steps=steps, repeatable=True)
        self.cache.keep(*self._known, _job(entry), answer)

    def find(self, entry: str) -> int | None:
        """The steps that were kept for an entry."""
        found = self.cache.find(*self._known, _job(entry))
        return None if found is None else found.steps


def _job(entry: str) -> Job:
    return {"mode": "run", "root": "/project", "file": "mod.py", "search": [], "entry": entry}


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "cache")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:-9],
        lambda data: data + b" ",
        lambda data: data.replace(b"true", b"null"),
        lambda data: data[65:],
        lambda data: b"\xff\xfe" + data,
        lambda data: b"0\n{}",
        lambda data: bytes(len(data)),
    ],
    ids=["empty", "cut", "longer", "changed", "no sum", "not UTF-8", "another sum", "zeros"],
)
def test_what_is_spoiled_does_not_count(
    kept: Kept, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    kept.keep("f", 7)
    assert kept.find("f") == 7
    [path] = entries(tmp_path)
    path.write_bytes(spoil(path.read_bytes()))
    assert kept.find("f") is None
    kept.keep("f", 7)
    assert kept.find("f") == 7


def test_an_entry_under_another_name_does_not_count(kept: Kept, tmp_path: Path) -> None:
    kept.keep("f", 1)
    [first] = entries(tmp_path)
    kept.keep("g", 2)
    [second] = set(entries(tmp_path)) - {first}
    os.replace(first, second)
    assert (kept.find("f"), kept.find("g")) == (None, None)


def test_a_folder_that_cannot_be_made_is_no_trouble(tmp_path: Path) -> None:
    for place in (tmp_path / "file", Path(os.devnull)):
        if place.parent == tmp_path:
            place.write_text("a file")
        kept = Kept(place / "cache")
        kept.keep("f", 7)
        assert kept.find("f") is None
        kept.cache.close()


def test_writers_at_once_leave_whole_entries(tmp_path: Path) -> None:
    def work(number: int) -> set[int | None]:
        kept = Kept(tmp_path / "cache")
        found = set()
        for _ in range(20):
            kept.keep("f", number)
            found.add(kept.find("f"))
        return found

    with ThreadPoolExecutor(4) as pool:
        assert set().union(*pool.map(work, range(4))) <= {0, 1, 2, 3}
    assert len(entries(tmp_path)) == 1


def test_what_was_not_used_for_longest_goes_first(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keep("f", 1)
    kept.keep("g", 2)
    for path in entries(tmp_path):
        os.utime(path, (1, 1))
    assert kept.find("g") == 2
    kept.keep("h", 3)
    size = sum(path.stat().st_size for path in entries(tmp_path))
    monkeypatch.setattr("pallas_fix.verify.cache.MOST_BYTES", size - 1)
    kept.cache.close()
    assert (kept.find("f"), kept.find("g"), kept.find("h")) == (None, 2, 3)
    tag = tmp_path / "cache" / "verdicts" / "CACHEDIR.TAG"
    assert tag.read_text().startswith("Signature: 8a477f59")


def test_only_what_is_ours_is_removed(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pallas_fix.verify.cache.MOST_BYTES", 0)
    cache = tmp_path / "cache"
    others = [cache / "ab" / ("0" * 62), cache / "verdicts" / "ab" / "thesis.txt"]
    for path in others:
        path.parent.mkdir(parents=True)
        path.write_text("x")
    kept.keep("f", 1)
    kept.cache.close()
    assert kept.find("f") is None
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("name", ["jax", "jaxlib"])
def test_a_jax_that_is_no_package_is_never_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    python, target = Path(sys.executable), TARGETS["v6e"]
    known = installed.installed(python, target)
    assert known is not None
    assert known.holds(os.__file__)
    assert known.holds(pytest.__file__)
    assert not known.holds(__file__)
    (tmp_path / name).mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert installed.installed(python, target) is None


def test_an_interpreter_that_does_not_start_is_never_remembered(tmp_path: Path) -> None:
    assert installed.installed(tmp_path / "python", TARGETS["v6e"]) is None


def test_the_place_follows_the_xdg_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PALLAS_FIX_CACHE_DIR")
    monkeypatch.setenv("HOME", "/home/her")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_folder() == Path("/caches/pallas-fix")
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    assert default_folder() == Path("/home/her/.cache/pallas-fix")


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ladder]:
    cache = Cache(tmp_path_factory.mktemp("cache"))
    with Ladder(Path(sys.executable), until=Stage.TRACE, cache=cache) as ladder:
        yield ladder


def twice(ladder: Ladder, root: Path, text: str, change: Callable[[], object]) -> list[Side]:
    """The stages of one file, and what they are after a change of the project."""
    sides = []
    for action in (lambda: None, change):
        action()
        (root / "mod.py").write_text(text)
        case = [parse_case("f(f32[8])")]
        [result] = ladder.check(root, root / "mod.py", text, text, case, ["v6e"])
        sides.append(result.after)
    return sides


@pytest.mark.parametrize(
    "text",
    [
        "f = lambda x: x * int(open('new.py').read())",
        "import new\ndef f(x): return x",
        "from importlib import import_module\nf = lambda x: import_module('new') and x",
        "try:\n    import new\nexcept ImportError:\n    new = None\ndef f(x): assert new\n",
        "import os\ndef f(x): assert 'new.py' in os.listdir()\n",
        "from pathlib import Path\ndef f(x): assert sorted(Path().glob('n*.py'))\n",
    ],
    ids=["data", "import", "import_module", "optional", "listdir", "glob"],
)
def test_what_was_missing_and_is_there_now_counts(
    ladder: Ladder, tmp_path: Path, text: str
) -> None:
    before, same = twice(ladder, tmp_path, text, lambda: None)
    assert before.stages[-1].ok is False
    assert all(cached(same))
    _, after = twice(ladder, tmp_path, text, lambda: (tmp_path / "new.py").write_text("1"))
    assert not any(cached(after))
    assert not after.stages[-1].message.startswith(("No module", "[Errno 2]"))


@pytest.mark.parametrize(
    "text",
    [
        "f = lambda x: x * int(open('data.txt').read())",
        "import numpy as np\nf = lambda x: x * int(np.loadtxt('data.txt'))",
        "from package.helper import S\nf = lambda x: x * S",
    ],
    ids=["open", "numpy", "beside a helper"],
)
def test_data_that_is_read_counts(ladder: Ladder, tmp_path: Path, text: str) -> None:
    (tmp_path / "data.txt").write_text("2")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "helper.py").write_text(
        "from pathlib import Path\n"
        "S = int((Path(__file__).resolve().parents[1] / 'data.txt').read_text())\n"
    )
    _, same = twice(ladder, tmp_path, text, lambda: None)
    assert all(cached(same))
    _, other = twice(ladder, tmp_path, text, lambda: (tmp_path / "data.txt").write_text("3"))
    assert not any(cached(other))


def test_sources_of_other_projects_count(ladder: Ladder, tmp_path: Path) -> None:
    other, root = tmp_path / "other", tmp_path / "project"
    other.mkdir()
    root.mkdir()
    (other / "sibling.py").write_text("S = 2\n")
    subprocess.run([sys.executable, "-m", "compileall", "-q", other], check=True)
    text = f"import sys\nsys.path.append({str(other)!r})\nfrom sibling import S\ndef f(x): x * S\n"
    _, same = twice(ladder, root, text, lambda: None)
    assert all(cached(same))
    _, changed = twice(ladder, root, text, lambda: (other / "sibling.py").write_text("S = 30\n"))
    assert not any(cached(changed))


@pytest.mark.parametrize(
    "body",
    [
        "bytearray(30 << 30)",
        "__import__('subprocess').run(['true'])",
        "open('left.py', 'w').close()",
    ],
)
def test_what_comes_from_elsewhere_is_not_kept(ladder: Ladder, tmp_path: Path, body: str) -> None:
    for side in twice(ladder, tmp_path, f"def f(x):\n    {body}\n    return x\n", lambda: None):
        assert not any(cached(side))
