"""Versions of jax: which ones a rule speaks of, and which ones the user's code must run on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

RELEASES = tuple(
    Version(text)
    for text in (
        "0.4.30 0.4.31 0.4.33 0.4.34 0.4.35 0.4.36 0.4.37 0.4.38 0.5.0 0.5.1 0.5.2 0.5.3 0.6.0 "
        "0.6.1 0.6.2 0.7.0 0.7.1 0.7.2 0.8.0 0.8.1 0.8.2 0.8.3 0.9.0 0.9.0.1 0.9.1 0.9.2 "
        "0.10.0 0.10.1 0.10.2 0.11.0 0.11.1 0.11.2 0.12.0 0.12.0.1"
    ).split()
)
"""The releases whose Pallas API is known to the rules, oldest first."""

NEWEST = RELEASES[-1]


@dataclass(frozen=True, slots=True)
class VersionRange:
    """The jax versions from `low` on, and before `before` if given."""

    low: Version
    before: Version | None = None

    def __contains__(self, version: Version) -> bool:
        return self.low <= version and (self.before is None or version < self.before)

    def __str__(self) -> str:
        return f">={self.low}" + (f",<{self.before}" if self.before else "")


def since(low: str, before: str | None = None) -> VersionRange:
    """The versions from `low` on, and before `before` if given."""
    return VersionRange(Version(low), Version(before) if before else None)


@dataclass(frozen=True, slots=True)
class Change:
    """When jax changed a form: the new one works from `works` on, the old one warns, then fails.

    `warns` or `fails` is None where no known release does.
    """

    works: Version
    warns: Version | None = None
    fails: Version | None = None

    def concerns(self, versions: Collection[Version]) -> bool:
        """True if the old form warns or fails on one of the versions."""
        return any(
            bound is not None and version >= bound
            for version in versions
            for bound in (self.warns, self.fails)
        )

    def lacking(self, versions: Collection[Version]) -> tuple[Version, ...]:
        """Those of the versions that do not have the new form yet."""
        return tuple(version for version in versions if version < self.works)

    def __str__(self) -> str:
        told = []
        if self.warns is not None and (self.fails is None or self.warns < self.fails):
            told.append(f"deprecated since jax {self.warns}")
        if self.fails is not None:
            told.append(f"gone since {'' if told else 'jax '}{self.fails}")
        return ", ".join(told)


def changed(works: str = "0.4.30", *, warns: str = "", fails: str = "") -> Change:
    """The new form works from `works` on; the old one warns and fails from then on."""
    return Change(
        Version(works), Version(warns) if warns else None, Version(fails) if fails else None
    )


def parse_jax(text: str) -> tuple[Version, ...]:
    """Read `--jax`: one version (`0.11.2`), or a range (`>=0.9,<0.12`) as the releases in it.

    Raises ValueError where the text is neither, or where no known release is in the range.
    """
    try:
        return (Version(text),)
    except InvalidVersion:
        pass
    try:
        specifiers = SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(
            f"{text!r} is neither a jax version (0.12.0.1) nor a range ('>=0.9,<0.12')"
        ) from None
    releases = tuple(version for version in RELEASES if version in specifiers)
    if not releases:
        raise ValueError(f"no known jax release is in {text!r} (known: {RELEASES[0]} to {NEWEST})")
    return releases


def parse_release(text: str) -> Version:
    """Read one version of jax; `0.12` is the newest known release of that series.

    Raises ValueError where the text is no version, or older than all that is known.
    """
    try:
        asked = Version(text)
    except InvalidVersion:
        raise ValueError(f"{text!r} is no jax version (0.12.0.1)") from None
    if asked < RELEASES[0] and asked.release != RELEASES[0].release[:2]:
        raise ValueError(f"jax {text} is older than all that is known ({RELEASES[0]} to {NEWEST})")
    series = [release for release in RELEASES if release.release[:2] == asked.release]
    return series[-1] if series else asked
