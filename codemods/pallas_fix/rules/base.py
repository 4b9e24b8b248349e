"""What a rule is, and what it answers with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from pallas_fix.edits import AddImport, Edit, Fix, InsertComment, SetComment, Span
from pallas_fix.versions import NEWEST, Change, VersionRange, since

if TYPE_CHECKING:
    import ast

    from packaging.version import Version

    from pallas_fix.facts import Facts


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a finding has no fix: a stable code, a sentence, and the way out."""

    code: str
    text: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a rule applies, with a fix or with the reason why there is none.

    `change` says since when jax has it so, where that differs from finding to finding: it counts
    if the code must run on a jax that `change` concerns.
    """

    code: str
    span: Span
    message: str
    fix: Fix | None = None
    reason: Reason | None = None
    function: str = "<module>"
    notes: tuple[str, ...] = field(default=())
    change: Change | None = None

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

    def concerns(self, text: str) -> bool:
        """False for a text in which nothing can be found, told without parsing it.

        It is asked of texts that hold one of the `triggers`.
        """
        return True

    @abstractmethod
    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield the findings of one module."""

    def reported(
        self,
        module: Facts,
        node: ast.AST,
        message: str,
        change: Change,
        made: Sequence[Edit] | Reason | None,
        *,
        certain: bool = True,
    ) -> Finding:
        """A finding at `node` about a form that jax changed.

        `made` are the edits of its fix, or the reason why there are none.
        """
        reason = made if isinstance(made, Reason) else None
        return Finding(
            self.code,
            module.span(node),
            message,
            None if made is None or isinstance(made, Reason) else Fix(tuple(made), certain),
            reason,
            module.names.qualname(node),
            change=change,
        )

    def findings(self, module: Facts) -> Iterator[Finding]:
        """What `find` yields, as far as it concerns the jax that the code must run on.

        A fix whose form is too new for some of these versions gives way to the reason, and so does
        one that would change an arm of somebody's test for versions.
        """
        versions = self.options.versions
        for found in self.find(module):
            finding = found
            if found.fix is not None and _enters_shim(module, found.fix):
                finding = replace(found, fix=None, reason=_SHIM)
            change = finding.change
            if change is None:
                yield finding
            elif change.concerns(versions):
                old = change.lacking(versions) if self.options.closed else ()
                if finding.fix is not None and old:
                    reason = needs_newer(VersionRange(change.works), f"jax {old[0]}")
                    finding = replace(finding, fix=None, reason=reason)
                yield finding


_SHIM = Reason(
    "part-of-a-shim",
    "its fix would change code under a test for versions or names of jax, which is left alone",
    "drop what the test keeps for an older jax, then run again",
)
_WORDLESS = (AddImport, InsertComment, SetComment)


def _enters_shim(module: Facts, fix: Fix) -> bool:
    edits = (edit for edit in fix.edits if not isinstance(edit, _WORDLESS))
    return any(module.is_guarded(edit.span) for edit in edits)


def needs_newer(works: VersionRange, wanted: str) -> Reason:
    """The reason of a fix whose form only `works` on some of the versions that are `wanted`."""
    return Reason(
        "needs-newer-jax",
        f"the new form needs jax {works}, and the code must run on {wanted}",
        f"raise the lowest version to {works.low}, or pass --jax '{works}'",
    )


@dataclass(frozen=True, slots=True)
class Options:
    """Settings that rules may read, from `[tool.pallas-fix]`."""

    loads: str = "stored"
    """GPU001: which accumulator loads get an assert, those that are `stored` back or `all`."""
    targets: tuple[str, ...] = ()
    """The chips that the user named, by the names of `pallas_fix.targets`."""
    versions: tuple[Version, ...] = (NEWEST,)
    """The jax versions that the code must run on, oldest first."""
    closed: bool = False
    """Whether all of `versions` count; else a fix may raise the lowest one that works."""

    @property
    def oldest(self) -> Version:
        """The oldest jax that a new form must work on."""
        return self.versions[0] if self.closed else self.versions[-1]
