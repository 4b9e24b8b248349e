"""Sums of numbers that a file does not say: `2 * m`, where `m` is a row count of the caller."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from fractions import Fraction

from pallas_fix.facts.values import Known

_ROWS = 8
"""Tiles have a multiple of 8 rows, so that `m // 8` of them leaves nothing over."""


@dataclass(frozen=True, order=True, slots=True)
class Linear:
    """`terms` are the unknown numbers by name, each with its factor, and `rest` is added.

    `node` and `parts` are as those of `Known`.
    """

    terms: tuple[tuple[str, Fraction], ...]
    rest: Fraction = Fraction(0)
    node: ast.expr | None = field(default=None, compare=False, repr=False)
    parts: tuple[tuple[ast.expr, Known], ...] = field(default=(), compare=False, repr=False)

    def times(self, factor: Fraction) -> Linear:
        """Each of it so many times."""
        terms = tuple((name, of * factor) for name, of in self.terms if of * factor)
        return Linear(terms, self.rest * factor)

    def plus(self, other: Linear) -> Linear:
        """Both together."""
        found = dict(self.terms)
        for name, of in other.terms:
            found[name] = found.get(name, Fraction(0)) + of
        terms = tuple(sorted((name, of) for name, of in found.items() if of))
        return Linear(terms, self.rest + other.rest)

    def ratio(self, other: Linear) -> Fraction | None:
        """The number of times that `other` goes into it, whatever the unknown numbers are."""
        [(name, of), *_] = [*other.terms, ("", other.rest)]
        factor = dict(self.terms).get(name, Fraction(0)) if name else self.rest
        if not of:
            return None
        found = factor / of
        return found if other.times(found) == Linear(self.terms, self.rest) else None

    @property
    def number(self) -> int | None:
        """The number that it is, if nothing in it is unknown."""
        return int(self.rest) if not self.terms and self.rest.denominator == 1 else None

    def __str__(self) -> str:
        texts = [f"{of} * {name.partition('@')[0]}" for name, of in self.terms]
        return " + ".join([*texts, str(self.rest)] if self.rest else texts) or "0"


def linear(value: object) -> Linear | None:
    """A value as a sum, if it is an integer or one already."""
    if isinstance(value, Linear):
        return value
    if isinstance(value, Known) and type(value.value) is int:
        return Linear((), Fraction(value.value))
    return None


def combined(op: ast.operator, left: Linear, right: Linear) -> Linear | None:
    """What an operator makes of two sums, if that is one."""
    match op:
        case ast.Add():
            return left.plus(right)
        case ast.Sub():
            return left.plus(right.times(Fraction(-1)))
        case ast.Mult() if not right.terms:
            return left.times(right.rest)
        case ast.Mult() if not left.terms:
            return right.times(left.rest)
        case ast.FloorDiv() if not right.terms and right.rest > 0:
            parts = [of / right.rest for _, of in left.terms]
            exact = all(_ROWS % part.denominator == 0 for part in parts)
            if exact and (left.rest / right.rest).denominator == 1:
                return left.times(1 / right.rest)
    return None
