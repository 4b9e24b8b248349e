"""Which cases speak of a file, and what the ladder says of its fixes."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pallas_fix.config import Config
from pallas_fix.files import Source, SourceError
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.verify.cases import MODULE, Case, CaseError, declared_cases
from pallas_fix.verify.verdict import CaseResult, Stage, Verdict

if TYPE_CHECKING:
    from pallas_fix.facts import Facts
    from pallas_fix.verify.commands import Commands
    from pallas_fix.verify.recorded import Recorded


class Climber(Protocol):
    """What `Ladder` does for a run."""

    def check(
        self,
        root: Path,
        path: Path,
        before: str,
        after: str,
        cases: Sequence[Case],
        targets: Sequence[str],
        bound: float | None = None,
    ) -> list[CaseResult]: ...


class Verification:
    """Verifies the fixes of one run, and remembers where kernels ran."""

    def __init__(
        self,
        settings: Callable[[Path], Config],
        ladder: Callable[[Config], Climber],
        until: Stage,
        device: bool = False,
        commands: Callable[[Config], Commands | None] = lambda config: None,
    ) -> None:
        """`settings` gives those of a file; `ladder` the one to climb on with such settings.

        With `device` nothing is verified that no device has run. `commands` gives those to run in
        the project of such settings.
        """
        self._settings = settings
        self._ladder = ladder
        self._until = until
        self._device = device
        self._commands = commands
        self._results: list[CaseResult] = []
        self._unimportable: set[Path] = set()
        self._lacks_cases = False

    def verdicts(
        self,
        source: Source,
        after: str,
        applied: Sequence[Finding],
        rules: Mapping[str, type[Rule]],
    ) -> tuple[Verdict, ...]:
        """A verdict for each of the findings `applied`, whose fixes together gave `after`."""
        from pallas_fix.verify.judge import judge

        functions = {name for finding in applied if finding.fix for name in finding.fix.functions}
        units = [finding.fix.bound.unit for finding in applied if finding.fix and finding.fix.bound]
        bound = max(units, default=None)
        said = self._said(source, after)
        results = self._climb(source, after, self.cases(source), bound)
        missed = functions.difference({MODULE}, *(result.after.entered for result in results))
        if missed:
            derived = _derived(source, missed)
            results += self._climb(source, after, derived, bound)
        self._results += results
        self._lacks_cases |= not results
        if results and not any(_imported(result) for result in results):
            self._unimportable.add(source.path)
        self._results += said
        return tuple(
            judge(
                finding.fix.functions if finding.fix else (),
                [*results, *said],
                messages=rules[finding.code].messages,
                meant=rules[finding.code].meant,
                device=self._device,
            )
            for finding in applied
        )

    def imports(self, source: Source) -> bool:
        """False where no case of this file came as far as to import it."""
        return source.path not in self._unimportable

    def decided(self, source: Source, text: str) -> None:
        """From now on this file has that text, for the commands that run on others."""
        commands, path = self._place(source)
        if commands is not None:
            commands.decided(path, source.encode(text))

    def cases(self, source: Source) -> list[Case]:
        """The cases that somebody declared for this file, and some that were recorded."""
        declared = [case for _, case in declared_cases(source.text) if isinstance(case, Case)]
        given = [
            case
            for case in self._settings(source.path).cases
            if case.path is not None or _defines(source.text, case.entry)
        ]
        cases = (*declared, *given, *self._recorded(source))
        return list(dict.fromkeys(self._located(source, case) for case in cases))

    def problems(self, source: Source) -> Iterator[SourceError]:
        """The declared cases of this file that do not parse."""
        for line, case in declared_cases(source.text):
            if isinstance(case, CaseError):
                yield SourceError(source.path, line, str(case))

    @property
    def hardware(self) -> str:
        """The sentence that says where kernels ran."""
        devices = dict.fromkeys(result.device for result in self._results if result.device)
        if devices:
            return f"ran on {', '.join(device for device in devices if device)}"
        if not self._results:
            why = ": no case to run one with" if self._lacks_cases else ""
            return f"no kernel was run{why}"
        places = dict.fromkeys(name for result in self._results for name in result.after.ran_on)
        why = self._why_no_hardware()
        return (
            f"ran on {', '.join(places)}, not on hardware: {why}"
            if places
            else (f"not run on hardware: {why}")
        )

    def _why_no_hardware(self) -> str:
        from pallas_fix.verify.devices import likely

        if self._until is not Stage.DEVICE:
            return f"--until {self._until.value}"
        if not likely("tpu") and not likely("gpu"):
            return "no GPU or TPU found"
        targets = ", ".join(dict.fromkeys(result.target for result in self._results))
        return f"no device here ran what is compiled for {targets}"

    def _said(self, source: Source, after: str) -> list[CaseResult]:
        """What the commands say of the file with the text `after`."""
        commands, path = self._place(source)
        return commands.check(path, source.encode(after)) if commands is not None else []

    def _place(self, source: Source) -> tuple[Commands | None, Path]:
        """The commands that can speak of a file, and its path in what they copy."""
        commands = self._commands(self._settings(source.path))
        real = Path(os.path.realpath(source.path))
        if commands is None or not real.is_relative_to(commands.base):
            return None, real
        return commands, real.relative_to(commands.base)

    def _recorded(self, source: Source) -> list[Case]:
        """Recorded cases that enter functions of this file: a few of each kernel."""
        from pallas_fix.verify.recorded import chosen

        root = self._settings(source.path).root
        real = Path(os.path.realpath(source.path))
        file = str(real.relative_to(root)) if real.is_relative_to(root) else str(real)
        return chosen([one for one in self._known(source) if not one.files or file in one.files])

    def _known(self, source: Source) -> Iterator[Recorded]:
        """The recorded cases of the file's project: kept ones, and those of commands."""
        from pallas_fix.verify.recorded import rebased

        config = self._settings(source.path)
        for _, recorded in config.recorded:
            yield from recorded
        commands, _ = self._place(source)
        if commands is not None:
            moved = (rebased(one, commands.base, config.root) for one in commands.recorded)
            yield from filter(None, moved)

    def _climb(
        self, source: Source, after: str, cases: Sequence[Case], bound: float | None
    ) -> list[CaseResult]:
        if not cases:
            return []
        root = self._root(source.path)
        targets = self.targets(source)
        ladder = self._ladder(self._settings(source.path))
        return ladder.check(root, source.path, source.text, after, cases, targets, bound)

    def targets(self, source: Source) -> tuple[str, ...]:
        """The targets of cases of this file that name none."""
        from pallas_fix.targets import default_targets

        return self._settings(source.path).targets or default_targets(source.text)

    def _root(self, path: Path) -> Path:
        root, real = self._settings(path).root, Path(os.path.realpath(path))
        return root if real.is_relative_to(root) else real.parent

    def _located(self, source: Source, case: Case) -> Case:
        """`case` without its path where that is the file itself."""
        if case.path is None:
            return case
        root = self._settings(source.path).root
        own = os.path.realpath(source.path) == os.path.realpath(root / case.path)
        return replace(case, path=None) if own else case


def _imported(result: CaseResult) -> bool:
    return any(stage.stage is Stage.IMPORT and stage.ok for stage in result.after.stages)


def _derived(source: Source, functions: set[str]) -> list[Case]:
    from pallas_fix.facts import Facts
    from pallas_fix.verify.derive import derived_cases

    return derived_cases(Facts.parse(source.text, str(source.path)), functions)


def _defines(text: str, entry: str) -> bool:
    name = re.escape(entry.partition(".")[0])
    return entry == MODULE or bool(
        re.search(rf"^(?:async\s+def|def|class)\s+{name}\b|^{name}\s*[:=]", text, re.MULTILINE)
    )


def case_line(module: Facts, finding: Finding, targets: Sequence[str]) -> str:
    """The comment that would have a fix verified: its entry, with `...` for what is unknown.

    The entry is the function around the launch whose kernel was fixed, else the first one that
    mentions what was fixed, else the top-level code that does. Empty where there is none.
    """
    fixed = {finding.function, *(finding.fix.functions if finding.fix else ())} - {MODULE}
    names = {part for name in fixed for part in (name.partition(".")[0], name.rpartition(".")[2])}
    launches = {launch.call for launch in module.launches}
    ranked = sorted(
        (rank, number)
        for number, statement in enumerate(module.tree.body)
        if (rank := _rank(statement, names, launches)) is not None
    )
    if not ranked:
        return ""
    where = f" @ {', '.join(targets)}" if targets else ""
    entry = module.tree.body[ranked[0][1]]
    if isinstance(entry, ast.FunctionDef):
        return f"# pallas-fix: case {entry.name}({', '.join(_parameters(entry))}){where}"
    return f"# pallas-fix: case {MODULE}(){where}"


def _rank(
    statement: ast.stmt, names: Collection[str], launches: Collection[ast.Call]
) -> int | None:
    """How good an entry a top-level statement is, 0 being the best; None if it is none."""
    if isinstance(statement, ast.ClassDef | ast.Import | ast.ImportFrom):
        return None
    own = isinstance(statement, ast.FunctionDef) and statement.name in names
    nodes = list(ast.walk(statement))
    mentioned = any(isinstance(node, ast.Name) and node.id in names for node in nodes)
    launching = any(isinstance(node, ast.Call) and node in launches for node in nodes)
    if launching and (own or mentioned):
        return 0
    if own or not mentioned:
        return None
    return 1 if isinstance(statement, ast.FunctionDef) else 2


def _parameters(function: ast.FunctionDef) -> Iterator[str]:
    """The parameters without a default, as arguments still to be filled in."""
    from pallas_fix.facts.scopes import defaults

    args = function.args
    known = defaults(args)
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        if arg not in known:
            yield f"{arg.arg}=..."
