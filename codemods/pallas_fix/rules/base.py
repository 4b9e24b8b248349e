"""What a rule is, and what it answers with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pallas_fix.edits import Fix, Span
from pallas_fix.versions import VersionRange, since

if TYPE_CHECKING:
    from pallas_fix.facts import Facts


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a finding has no fix: a stable code, a sentence, and the way out."""

    code: str
    text: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a rule applies, with a fix or with the reason why there is none."""

    code: str
    span: Span
    message: str
    fix: Fix | None = None
    reason: Reason | None = None
    function: str = "<module>"
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if (self.fix is None) == (self.reason is None):
            raise ValueError(f"{self.code}: a finding has either a fix or a reason")


class Rule(ABC):
    """One kind of trouble.

    The docstring of a rule is its documentation, in fixed sections. A rule registers itself
    by living in a module of `pallas_fix.rules`.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    triggers: ClassVar[tuple[str, ...]]
    """Words of which a file must hold at least one, or it is not even parsed."""
    messages: ClassVar[tuple[str, ...]] = ()
    """Regular expressions of the jax errors that this rule owns."""
    meant: ClassVar[bool] = False
    """Whether the emulator knows what a file means that fails so: its numbers then refute."""
    applies: ClassVar[VersionRange] = since("0.4.30")
    """The jax versions on which the old form fails and the new one works."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()

    @abstractmethod
    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield the findings of one module."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that rules may read, from `[tool.pallas-fix]`."""

    loads: str = "stored"
    """GPU001: which accumulator loads get an assert, those that are `stored` back or `all`."""
    targets: tuple[str, ...] = ()
    """The chips that the user named, by the names of `pallas_fix.targets`."""
