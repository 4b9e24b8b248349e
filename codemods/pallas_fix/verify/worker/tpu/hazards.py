"""What a kernel does wrong, though its compiler accepts it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "note"]


@dataclass(frozen=True, slots=True)
class Hazard:
    """One kind of hazard at one place.

    `site` is what the caller of the machine named as the place, `count` how often it happened
    there, `message` tells of the first time.
    """

    kind: str
    severity: Severity
    site: Hashable
    count: int
    message: str


class Hazards:
    """The hazards of one run, in the order in which they first happened."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Severity, Hashable], tuple[int, str]] = {}

    def add(self, kind: str, site: Hashable, message: str, severity: Severity = "error") -> None:
        count, first = self._found.get((kind, severity, site), (0, message))
        self._found[kind, severity, site] = count + 1, first

    def copy(self) -> Hazards:
        copy = Hazards()
        copy._found = dict(self._found)
        return copy

    def told(self) -> list[Hazard]:
        return [
            Hazard(kind, severity, site, count, message)
            for (kind, severity, site), (count, message) in self._found.items()
        ]
