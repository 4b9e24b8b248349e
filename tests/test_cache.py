"""What is remembered of jobs, when it counts, and that nothing in the folder can do harm."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pallas_fix.verify import installed
from pallas_fix.verify.cache import Cache
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.ladder import Ladder
from pallas_fix.verify.verdict import CaseResult, Side, Stage

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
    return [path for path in (tmp_path / "cache").glob("*/*") if path.is_file()]


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


def test_data_that_is_read_counts(check: Check, tmp_path: Path) -> None:
    text = "f = lambda x: x * int(open('scale.txt').read())\n"
    (tmp_path / "project" / "scale.txt").write_text("2")
    check(before=text, after=text)
    assert all(cached(check(before=text, after=text).after))
    (tmp_path / "project" / "scale.txt").write_text("3")
    assert not any(cached(check(before=text, after=text).after))


def test_other_packages_and_other_code_of_ours_count(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    monkeypatch.setattr(installed, "_worker", lambda: "another")
    installed.installed.cache_clear()
    assert not any(cached(check().after))
    installed.installed.cache_clear()


@pytest.mark.parametrize(
    "spoil",
    [b"", b"{", b"\xff\xfe", b"0\n{}", b"x" * 4096],
    ids=["empty", "cut", "bytes", "sum", "x"],
)
def test_what_is_spoiled_is_asked_anew(check: Check, tmp_path: Path, spoil: bytes) -> None:
    first = check()
    for path in entries(tmp_path):
        path.write_bytes(spoil)
    second = check()
    assert not any(cached(second.after))
    assert second.compared == first.compared


def test_an_entry_that_was_changed_by_hand_does_not_count(check: Check, tmp_path: Path) -> None:
    check()
    for path in entries(tmp_path):
        path.write_text(path.read_text().replace('"ok": true', '"ok": null'))
    assert not any(cached(check().after))


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


def test_a_folder_that_cannot_be_written_is_no_trouble(check: Check, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert not any(cached(check().after))
    assert not any(cached(check().after))


def test_runs_at_once_do_not_disturb_each_other(check: Check, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: check(), range(2)))
    assert [stage.ok for result in results for stage in result.after.stages] == [True] * 10
    assert all(cached(check().after))
    assert not [path for path in entries(tmp_path) if path.name.startswith("tmp")]


def test_the_folder_stays_small(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    old = entries(tmp_path)
    for path in old:
        os.utime(path, (1, 1))
    size = sum(path.stat().st_size for path in old)
    monkeypatch.setattr("pallas_fix.verify.cache.MOST_BYTES", size + 100)
    check(case="f(f32[16])")
    left = entries(tmp_path)
    assert left
    assert not set(left) & set(old)
    assert (tmp_path / "cache" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f59")
