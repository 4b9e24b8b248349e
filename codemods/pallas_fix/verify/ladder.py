"""The ladder: climbs the stages with both versions of a file, on cases and targets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from pallas_fix.targets import Target, find_target
from pallas_fix.verify.cache import Cache
from pallas_fix.verify.cases import Case
from pallas_fix.verify.climb import Climb, Plan, climb
from pallas_fix.verify.compare import Pairs, compare
from pallas_fix.verify.ends import Limits
from pallas_fix.verify.jobs import PLAIN, REORDERED, Job, describe
from pallas_fix.verify.process import Outcome
from pallas_fix.verify.shadow import Shadow
from pallas_fix.verify.verdict import CaseResult, Comparison, Stage
from pallas_fix.verify.workers import Workers

__all__ = ["Ladder", "Limits"]


class Ladder:
    """Runs cases in worker processes that stay warm between checks.

    Use it as a context manager: leaving it ends the workers and removes what they wrote. All
    work happens in a temporary folder; the user's files are only read.
    """

    def __init__(
        self,
        python: Path,
        *,
        before_python: Path | None = None,
        jobs: int = 1,
        until: Stage = Stage.DEVICE,
        limits: Limits | None = None,
        cache: Cache | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`python` is the interpreter of the user's project; `jobs` workers run at once.

        `before_python`, if given, is the one for the versions before. `cache` remembers what was
        answered, and `say` is told what is being done.
        """
        self._python = python
        self._before_python = before_python or python
        self._jobs = jobs
        self._until = until
        self._cache = cache
        self._say = say
        self._folder = Path(tempfile.mkdtemp(prefix="pallas-fix-")).resolve()
        self._workers = Workers(self._folder, limits or Limits())
        self._shadows: dict[Path, Shadow] = {}
        self._climbs = 0

    def __enter__(self) -> Ladder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers and remove the temporary folder."""
        self._workers.close()
        if self._cache is not None:
            self._cache.close()
        shutil.rmtree(self._folder, ignore_errors=True)

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
        """Climb with both texts of the file `path` of the project at `root`.

        Every case is tried for its own targets, or for `targets` if it names none, in order.
        `bound` is the rounding unit of a fix that reorders sums (`Bound.unit`). Raises ValueError
        for an unknown target, or a path outside of `root`.
        """
        plans = list(self._plans(root.resolve(), path, before, after, cases, targets, bound))
        climbs = self._climb_all(plans)
        if before == after and self._python == self._before_python:
            climbs = [climb for climb in climbs for _ in range(2)]
        results = []
        for old, new in zip(climbs[::2], climbs[1::2], strict=True):
            compared = () if old is new else tuple(self._compared(old, new, bound))
            case, target = str(new.plan.case), new.plan.target.name
            results.append(CaseResult(case, target, old.side(), new.side(), compared))
        for climbed in climbs:
            shutil.rmtree(climbed.plan.folder, ignore_errors=True)
        return results

    def _plans(
        self,
        root: Path,
        path: Path,
        before: str,
        after: str,
        cases: Sequence[Case],
        targets: Sequence[str],
        bound: float | None,
    ) -> Iterator[Plan]:
        """The version before and the one after of each case and target; once if they are one."""
        relative = path.resolve().relative_to(root)
        shadow = self._shadow(root, relative)
        versions = [(before, self._before_python), (after, self._python)]
        views = [
            (shadow.view(relative, text), text, python) for text, python in dict.fromkeys(versions)
        ]
        for case in cases:
            for target in map(find_target, case.targets or targets):
                for number, (view, text, python) in enumerate(views):
                    self._climbs += 1
                    yield Plan(
                        job=describe(root, relative, view, text, case),
                        case=case,
                        target=target,
                        python=python,
                        runs=PLAIN if bound is None else PLAIN + REORDERED,
                        folder=self._folder / f"numbers{self._climbs}",
                        version=("before", "after")[number] if len(views) == 2 else "",
                        partial=shadow.full,
                    )

    def _shadow(self, root: Path, relative: Path) -> Shadow:
        if root not in self._shadows:
            folder = self._folder / f"project{len(self._shadows)}"
            self._shadows[root] = Shadow(root, folder)
        self._shadows[root].refresh(relative)
        return self._shadows[root]

    def _climb_all(self, plans: Sequence[Plan]) -> list[Climb]:
        pool = ThreadPoolExecutor(self._jobs)
        try:
            return list(pool.map(self._climb, plans))
        except BaseException:
            self.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _climb(self, plan: Plan) -> Climb:
        def say(mode: str) -> None:
            case = replace(plan.case, targets=())
            what = f"{plan.version} {mode}".strip()
            self._say(f"verifying {plan.job['file']}: {case} @ {plan.target.name}: {what}")

        return climb(plan, self._until, self._do, say)

    def _do(self, python: Path, target: Target, device: bool, job: Job) -> Outcome:
        """Do a job, unless its answer is known. Numbers of a device are always new."""
        if self._cache is None or device:
            return self._workers.run(python, target, device, job)
        known = self._cache.find(python, target, job)
        if known is not None:
            return known
        outcome = self._workers.run(python, target, device, job)
        self._cache.keep(python, target, job, outcome)
        return outcome

    def _compared(self, before: Climb, after: Climb, bound: float | None) -> Iterator[Comparison]:
        for mode, stage in (("run", Stage.RUN), ("device", Stage.DEVICE)):
            if mode in before.done and mode in after.done:
                one, two = before.done[mode], after.done[mode]

                def ask(pairs: Pairs, mode: str = mode) -> dict[int, dict[str, Any]]:
                    return self._differences(before, after, mode, pairs, bound)

                found = compare(stage, one, two, ask, bound is not None)
                if found is not None:
                    yield found

    def _differences(
        self, before: Climb, after: Climb, mode: str, pairs: Pairs, bound: float | None
    ) -> dict[int, dict[str, Any]]:
        """Ask a worker how the kept numbers differ; those of a known answer are made again."""
        plan = after.plan
        for one in (before, after):
            if self._cache is not None and not one.folder(mode).exists():
                what = one.plan.python, one.plan.target
                again = self._workers.run(*what, False, one.jobs[mode])
                if again.numbers != one.done[mode].numbers:
                    self._cache.forget(*what, one.jobs[mode])
                    return {}
        job = {
            "mode": "compare",
            "root": plan.job["root"],
            "before": str(before.folder(mode)),
            "after": str(after.folder(mode)),
            "pairs": pairs,
            "unit": bound,
            "steps": max(1, before.done[mode].steps, after.done[mode].steps),
        }
        outcome = self._workers.run(plan.python, plan.target, False, job)
        return {told["index"]: told for told in outcome.differences}
