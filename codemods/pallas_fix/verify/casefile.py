"""Files of recorded cases, which are kept with a project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pallas_fix.pyproject import ConfigError, nearest, read_toml
from pallas_fix.verify.cases import CaseError, parse_case
from pallas_fix.verify.recorded import Recorded, merged

_KEYS = ("case", "kernel", "where", "command", "files")

_HEAD = """\
# The cases that `pallas-fix apply` verifies with, as `pallas-fix record` saw them launched.
# Record again rather than edit; a case without a `command` is yours, and stays.
"""


def read_cases(file: Path) -> tuple[Recorded, ...]:
    """The cases in a file; the paths in them are relative to the root of its project.

    Raises ConfigError.
    """
    document = read_toml(file)
    tables = document.pop("case", [])
    for key in document:
        raise ConfigError(f"{file}: unknown key {key!r}{nearest(key, ('case',))}")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{file}: each case is a table: [[case]]")
    return tuple(_recorded(table, f"{file}: case {n}") for n, table in enumerate(tables, start=1))


def _recorded(table: dict[str, Any], place: str) -> Recorded:
    for key, value in table.items():
        if key not in _KEYS:
            raise ConfigError(f"{place}: unknown key {key!r}{nearest(key, _KEYS)}")
        texts = value if key == "files" and isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            kind = "a list of strings" if key == "files" else "a string"
            raise ConfigError(f"{place}: {key} must be {kind}")
    try:
        case = parse_case(table.get("case", ""))
    except CaseError as error:
        raise ConfigError(f"{place}: {error}") from None
    if case.path is None:
        raise ConfigError(f"{place}: name the file of the entry: path/to/kernels.py:{case}")
    return Recorded(
        case,
        table.get("kernel", ""),
        table.get("where", ""),
        table.get("command", ""),
        tuple(table.get("files", ())),
    )


def case_file(recorded: Sequence[Recorded], kept: Sequence[Recorded] = ()) -> str:
    """The text of a file with these cases, and those of `kept` that no command recorded.

    The order is that of the texts of the cases, so that recording again changes nothing else.
    """
    own = [one for one in kept if not one.command]
    known = {str(one.case) for one in own}
    new = [one for one in recorded if str(one.case) not in known]
    return _HEAD + "".join(map(_table, merged([*own, *new])))


def _table(one: Recorded) -> str:
    texts = {
        "case": str(one.case),
        "kernel": one.kernel,
        "where": one.where,
        "command": one.command,
    }
    lines = ["", "[[case]]", *(f"{key} = {_text(text)}" for key, text in texts.items() if text)]
    if one.files:
        lines.append(f"files = [{', '.join(map(_text, one.files))}]")
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """A TOML string: a literal one where that can hold the text."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
