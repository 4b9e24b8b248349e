"""Findings that a project knows of and lives with: neither fixed nor reported.

A baseline is a JSON file. Paths in it are relative to its folder, and nothing in it speaks of
lines, so that it holds while code moves.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pallas_fix.files import SourceError, put, read_bytes
from pallas_fix.pyproject import ConfigError
from pallas_fix.sieve import Key

VERSION = 1
_KEYS = {"path": str, "code": str, "function": str, "message": str, "count": int}
_MOST = 20
"""So many entries that are not needed any more are named."""


@dataclass(frozen=True)
class Baseline:
    """What `file` knows: how many findings of each key there are, by the path of their file."""

    file: Path
    entries: Mapping[str, Mapping[Key, int]]

    @classmethod
    def read(cls, file: Path) -> Baseline:
        """The baseline in `file`. Raises ConfigError."""
        if not os.path.lexists(file):
            raise _error(file, "is not there; --write-baseline makes one")
        try:
            document = json.loads(read_bytes(file).decode())
        except SourceError as error:
            raise _error(file, error.message) from None
        except (ValueError, RecursionError) as error:
            raise _error(file, f"is no JSON ({error}); write it anew: --write-baseline") from None
        entries: dict[str, Counter[Key]] = {}
        for entry in _findings(file, document):
            key = entry["code"], entry["function"], entry["message"]
            entries.setdefault(entry["path"], Counter())[key] += entry["count"]
        return cls(file, entries)

    def known(self, path: Path) -> Mapping[Key, int]:
        """What is known of the file at `path`."""
        return self.entries.get(_name(self.file, os.path.realpath(path)), {})

    def unused(
        self,
        found: Mapping[str, Mapping[Key, int]],
        asked: Callable[[Path, str], bool],
    ) -> list[str]:
        """What nothing needs any more, in lines for people.

        `found` are the findings of the files that were looked at, by their real paths, and `asked`
        tells if a rule looked at a file. Nothing is said of other files, but for those that are
        gone.
        """
        gone = []
        for name, known in sorted(self.entries.items()):
            path = os.path.join(os.path.realpath(self.file.parent), name)
            there = found.get(path, {})
            if path not in found and os.path.lexists(path):
                continue
            for (code, function, message), count in sorted(known.items()):
                left = count - there.get((code, function, message), 0)
                if left > 0 and (path not in found or asked(Path(path), code)):
                    times = f" ({left} times)" if left > 1 else ""
                    gone.append(f"{name}: {code} in {function}: {message}{times}")
        if not gone:
            return []
        head = f"gone, but still in {self.file}; --write-baseline writes it anew:"
        more = [f"and {len(gone) - _MOST} more"] if len(gone) > _MOST else []
        return [head, *(f"    {line}" for line in [*gone[:_MOST], *more])]


def write_baseline(file: Path, found: Mapping[str, Mapping[Key, int]]) -> int:
    """Write the findings, by the real paths of their files; return how many there are.

    Raises ConfigError where the file cannot be written.
    """
    entries = sorted(
        (_name(file, path), key, count)
        for path, counts in found.items()
        for key, count in counts.items()
        if count > 0
    )
    lines = [
        json.dumps(
            {"path": name, "code": key[0], "function": key[1], "message": key[2], "count": count}
        )
        for name, key, count in entries
    ]
    body = "\n    " + ",\n    ".join(lines) + "\n  " if lines else ""
    text = f'{{\n  "version": {VERSION},\n  "findings": [{body}]\n}}\n'
    try:
        put(file, text.encode())
    except OSError as error:
        raise ConfigError(
            f"--write-baseline: {file}: cannot be written: {error.strerror}"
        ) from None
    return sum(count for _, _, count in entries)


def _name(file: Path, path: str) -> str:
    return os.path.relpath(path, os.path.realpath(file.parent)).replace(os.sep, "/")


def _findings(file: Path, document: Any) -> Iterator[dict[str, Any]]:
    """The entries of a document. Raises ConfigError where it is no baseline."""
    version = document.get("version") if isinstance(document, dict) else None
    if version != VERSION:
        what = "is no baseline" if version is None else f"is of version {version!r}"
        raise _error(file, f"{what}: this pallas-fix writes version {VERSION} (--write-baseline)")
    entries = document.get("findings")
    if not isinstance(entries, list):
        raise _error(file, "'findings' must be a list")
    for number, entry in enumerate(entries, start=1):
        for name, kind in _KEYS.items():
            value = entry.get(name) if isinstance(entry, dict) else None
            if type(value) is not kind:
                raise _error(file, f"finding {number}: {name!r} must be of type {kind.__name__}")
        yield entry


def _error(file: Path, what: str) -> ConfigError:
    return ConfigError(f"--baseline: {file}: {what}")
