"""Passes over one file until nothing changes, and the guards around each of them.

A fix that does not do what fixes promise is a bug of its rule: then the text comes back as it
was, and the outcome names the rule.
"""

from __future__ import annotations

import ast
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pallas_fix.edits import (
    AddImport,
    Edit,
    Fix,
    RemoveStatement,
    Replace,
    SetImported,
    SetModule,
    Span,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.positions import Positions
from pallas_fix.rules.base import Finding, Rule

_GONE = (RemoveStatement, Replace, SetImported, SetModule)
LIMIT = 10
"""So many passes in a row may leave no less to fix than there was before them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file.

    `applied` are the findings whose fix is in `text`, with the spans that they had when they were
    found; `remaining` are those that `text` still has. `bug` is empty, or one line that names
    the rule: then `text` is the original one, and nothing is applied. So it is where `unfit`
    says why libcst cannot hold this file, in which then nothing can be edited.
    """

    text: str
    applied: tuple[Finding, ...]
    remaining: tuple[Finding, ...]
    bug: str = ""
    unfit: str = ""


class _Bug(Exception):
    """A rule, or the rewriting of a file, that does not hold what it promises."""


class _Unfit(Exception):
    """A file that libcst cannot hold."""


def fix_text(
    text: str, path: str, rules: Sequence[Rule], accept: Callable[[Finding], bool]
) -> Outcome:
    """Find and fix until nothing changes; `accept` says whose fix is made.

    A text without a trigger word of any rule is not even parsed. Raises SyntaxError, ValueError
    or RecursionError where Python cannot read `text`.
    """
    if not _triggered(text, rules):
        return Outcome(text, (), ())
    state = _State.of(text, path, rules)
    first, stalled = state, 0
    applied: list[Finding] = []
    try:
        while True:
            if state.crash:
                raise _Bug(state.crash)
            wanted = [(f, f.fix) for f in state.findings if f.fix is not None and accept(f)]
            if not wanted:
                return Outcome(state.facts.text, tuple(applied), state.findings)
            state, made = _pass(state, wanted, path, rules)
            applied += made
            left = sum(f.fix is not None and accept(f) for f in state.findings)
            stalled = stalled + 1 if left >= len(wanted) else 0
            if stalled == LIMIT:
                raise _Bug(
                    f"{_codes(made)}: after {LIMIT} passes there is as much to fix as before"
                )
    except _Unfit as unfit:
        return Outcome(text, (), first.findings, unfit=str(unfit))
    except _Bug as bug:
        return Outcome(text, (), first.findings, str(bug))


@dataclass(frozen=True, slots=True)
class _State:
    """A text with what the rules find in it; `crash` tells of a rule that could not finish."""

    facts: Facts
    findings: tuple[Finding, ...]
    crash: str

    @classmethod
    def of(cls, text: str, path: str, rules: Sequence[Rule]) -> _State:
        facts = Facts.parse(text, path)
        findings: list[Finding] = []
        crash = ""
        for rule in _triggered(text, rules):
            try:
                findings += rule.findings(facts)
            except Exception as error:
                crash = crash or f"{rule.code} ({rule.name}) failed: {_shown(error)}"
        return cls(facts, tuple(findings), crash)

    def places(self, findings: Iterable[Finding]) -> Counter[tuple[str, ...]]:
        """The findings by what is left of their place when lines move."""
        source = Positions(self.facts.text).source
        return Counter((f.code, f.function, f.message, source(f.span)) for f in findings)


def _pass(
    before: _State, wanted: Sequence[tuple[Finding, Fix]], path: str, rules: Sequence[Rule]
) -> tuple[_State, list[Finding]]:
    """Make the fixes that can be made together.

    Raises _Bug where one of the guards says no, and _Unfit where libcst cannot hold the file.
    """
    from pallas_fix.rewrite import RewriteError, apply_fixes

    try:
        rewritten = apply_fixes(before.facts.text, [fix for _, fix in wanted])
    except RewriteError as error:
        if isinstance(error.__context__, RecursionError):
            raise _Unfit(str(error)) from None
        if error.fix is None:
            _hold(before.facts.text)
        who = "this file" if error.fix is None else wanted[error.fix][0].code
        raise _Bug(f"{who}: {error}") from None
    made = [wanted[number][0] for number in rewritten.applied]
    if rewritten.text == before.facts.text:
        raise _Bug(f"{_codes(made)}: the fix changes nothing")
    try:
        after = _State.of(rewritten.text, path, rules)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise _Bug(f"{_codes(made)}: the result does not parse: {_shown(error)}") from None
    refused = _refused(after.facts)
    if refused and not _refused(before.facts):
        raise _Bug(f"{_codes(made)}: the result does not compile: {refused}")
    edits = [edit for number in rewritten.applied for edit in wanted[number][1].edits]
    lost = _lost(before.facts, after.facts, edits)
    if lost:
        raise _Bug(f"{_codes(made)}: {lost}")
    again = after.places(after.findings) - (before.places(before.findings) - before.places(made))
    for finding in made:
        if again & before.places([finding]):
            line = finding.span.line
            raise _Bug(f"{finding.code}: line {line} is found again after it was fixed")
    return after, made


def _hold(text: str) -> None:
    """Raises _Unfit where libcst cannot hold `text`."""
    from pallas_fix.rewrite.text import RewriteError, parse

    try:
        parse(text)
    except RewriteError as error:
        raise _Unfit(str(error)) from None


def _lost(before: Facts, after: Facts, edits: Sequence[Edit]) -> str:
    """What an edit elsewhere has changed or dropped; empty where all is well."""
    touched = [edit.span for edit in edits if not isinstance(edit, AddImport)]
    sources = (after.source(node) for node in after.tree.body)  # each `in` goes on from the last
    for node in before.tree.body:
        span = before.span(node)
        if not any(_meet(span, other) for other in touched) and before.source(node) not in sources:
            return f"line {span.line} is lost, though no edit touches it"
    gone = [edit.span for edit in edits if isinstance(edit, _GONE)]
    kept = Counter(_imports(before, gone)) - Counter(_imports(after, []))
    for name in kept:
        return f"the import of {name} is lost"
    return ""


def _refused(facts: Facts) -> str:
    """What the compiler says of a module that parses (`break` outside of a loop); empty if nothing.

    No code is run.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(facts.text.removeprefix("\ufeff"), facts.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        return _shown(error)
    return ""


def _imports(facts: Facts, without: Sequence[Span]) -> Iterator[str]:
    """Every import of a module, but for those in some spans."""
    for node in ast.walk(facts.tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if any(span.contains(facts.span(node)) for span in without):
            continue
        module = ""
        if isinstance(node, ast.ImportFrom):
            module = f"{'.' * node.level}{node.module or ''}: "
        yield from (f"{module}{alias.name} as {alias.asname or alias.name}" for alias in node.names)


def _meet(one: Span, other: Span) -> bool:
    return (one.line, one.column) <= (other.end_line, other.end_column) and (
        other.line,
        other.column,
    ) <= (one.end_line, one.end_column)


def _triggered(text: str, rules: Sequence[Rule]) -> list[Rule]:
    return [
        rule
        for rule in rules
        if any(word in text for word in rule.triggers) and rule.concerns(text)
    ]


def _codes(findings: Iterable[Finding]) -> str:
    return ", ".join(sorted({finding.code for finding in findings}))


def _shown(error: Exception) -> str:
    """An exception in one line, with the place that raised it."""
    said = " ".join(str(error).split())
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {said}{where}" if said else f"{type(error).__name__}{where}"
