"""What a rule is about, and which rule owns an error message."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pallas_fix.meanings import Meaning, meanings, names_something
from pallas_fix.rules.base import Rule

_FRAME = re.compile(r'^\s*File "([^"]+)", line \d+', re.MULTILINE)
_OWN = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python\d[.\d]*)[/\\]|^<")


@dataclass(frozen=True)
class Match:
    """A rule that owns an error: the message from where it knew it, and the user's file."""

    code: str
    rule: type[Rule]
    words: str
    file: str = ""


def page(rule: type[Rule]) -> str:
    """The documentation of a rule: its heading, its versions and its docstring."""
    doc = inspect.getdoc(rule) or ""
    return f"# {rule.code} {rule.name}\n\nFor jax {rule.applies}.\n\n{doc.rstrip()}\n"


def owners(message: str, rules: Mapping[str, type[Rule]]) -> list[Match]:
    """The rules that own an error, the one with the most exact pattern first.

    `message` may be a whole traceback, and may have been broken into lines by a terminal.
    """
    for text in (message, " ".join(message.split())):
        found = [
            (len(pattern), Match(code, rule, text[match.start() :], _user_file(message)))
            for code, rule in rules.items()
            for pattern in rule.messages
            if (match := re.search(pattern, text))
        ]
        if found:
            found.sort(key=lambda item: -item[0])
            return list({match.code: match for _, match in reversed(found)}.values())[::-1]
    return []


def meaning(match: Match) -> Iterator[str]:
    """The lines that say what an error means and what to do about it."""
    rule = match.rule
    summary, _, rest = (inspect.getdoc(rule) or "").partition("\n")
    yield f"{match.code} [{rule.name}] {summary}"
    yield ""
    words = match.words.partition("\n")[0]
    yield f"The message: {textwrap.shorten(words, 160, placeholder=' ...')}"
    yield f"Applies to jax {rule.applies}."
    why = _section(rest, "Why it fails")
    if why:
        yield ""
        yield why
    yield ""
    yield f"To repair it:      pallas-fix apply --select {match.code} {match.file or 'PATH'}"
    yield f"The whole page:    pallas-fix explain {match.code}"


def _section(doc: str, heading: str) -> str:
    match = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", doc, re.MULTILINE | re.DOTALL)
    return match[1].strip() if match else ""


def _user_file(message: str) -> str:
    """The file of the innermost frame that is not of Python or of a package."""
    files = [match[1] for match in _FRAME.finditer(message)]
    return next((file for file in reversed(files) if not _OWN.search(file)), "")


def answer(text: str, rules: Mapping[str, type[Rule]]) -> tuple[bool, list[str]]:
    """Whether a code, a rule's name, or a message is known, and the lines to print."""
    word = text.strip()
    for code, rule in rules.items():
        if word.upper() == code or word.lower() == rule.name:
            return True, page(rule).splitlines()
    known = _known(text)
    found = _decided(owners(text, rules), text, known)
    if known is not None:
        lines = list(explained(known, text, rules.get(known.code)))
        found = [match for match in found if match.code != known.code]
    elif found:
        lines = list(meaning(found[0]))
        found = found[1:]
    else:
        return False, _unknown(word, rules)
    lines += [f"See also:          pallas-fix explain {other.code}" for other in found]
    return True, lines


def _known(text: str) -> Meaning | None:
    """The most exact meaning of a message, which a terminal may have broken into lines."""
    for message in (text, " ".join(text.split())):
        for known in meanings(message):
            return known
    return None


def _decided(found: list[Match], text: str, known: Meaning | None) -> list[Match]:
    """Without the rule that owns every message about a name, where it does not know the name."""
    if known is None and names_something(text):
        return [match for match in found if match.code != "API001"]
    return found


def explained(known: Meaning, text: str, rule: type[Rule] | None) -> Iterator[str]:
    """The lines that say what a message of the table means and what to do about it."""
    words = known.found(text) or known.found(" ".join(text.split()))
    if rule is not None:
        summary = (inspect.getdoc(rule) or "").partition("\n\n")[0]
        yield f"{rule.code} [{rule.name}] {' '.join(summary.split())}"
    else:
        yield "No rule repairs this."
    yield ""
    words = words.strip().partition("\n")[0]
    yield f"The message: {textwrap.shorten(words, 160, placeholder=' ...')}"
    yield from textwrap.wrap(f"What it means: {known.meaning}", 96)
    if known.since:
        yield f"Since jax {known.since}."
    yield ""
    if known.way_out:
        yield from textwrap.wrap(f"What to do: {known.way_out}", 96, break_on_hyphens=False)
    if rule is not None:
        file = _user_file(text) or "PATH"
        yield f"To repair it:      pallas-fix apply --select {rule.code} {file}"
        yield f"The whole page:    pallas-fix explain {rule.code}"


def _unknown(word: str, rules: Mapping[str, type[Rule]]) -> list[str]:
    if not word:
        return ["there is nothing to explain: give a code, a message or a traceback"]
    if len(word.split()) == 1:
        names = {name: code for code, rule in rules.items() for name in (code, rule.name)}
        near = get_close_matches(word.upper(), names, 3, 0.5) or get_close_matches(word, names, 3)
        hint = f" (nearest: {', '.join(near)})" if near else ""
        return [f"no rule is called {word!r}{hint}", "pallas-fix rules lists them"]
    return [
        "no rule owns this message",
        "It may come from somewhere else: pallas-fix knows errors of Pallas accumulators, and of "
        "names and arguments of jax that have changed.",
        "pallas-fix rules lists what it knows",
    ]


def table(rules: Mapping[str, type[Rule]]) -> Iterator[str]:
    """One line for each rule: code, name, jax versions, summary."""
    room = max(len(rule.name) for rule in rules.values())
    for code, rule in rules.items():
        summary = (inspect.getdoc(rule) or "").partition("\n\n")[0]
        yield f"{code}  {rule.name:<{room}}  jax {rule.applies!s:<12} {' '.join(summary.split())}"
