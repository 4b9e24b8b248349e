"""The calls that name an accumulator by its address, and each time that one runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.linear import Linear
from pallas_fix.facts.names import Function
from pallas_fix.facts.primitives import takes_address
from pallas_fix.facts.scopes import FUNCTIONS
from pallas_fix.facts.values import Address, Event, Known, Region, Trace

ACC, POP = "pltpu.matmul_acc_lhs", "pltpu.matmul_pop"

Key = tuple[int, int | Linear]
"""An accumulator of the old API: the MXU, and the address of its first register there."""


@dataclass(frozen=True, slots=True)
class Use:
    """One time that a call runs.

    `chain` holds the runs of functions around it, the kernel's first. `known` is false in code
    that may run at any time.
    """

    event: Event
    call: ast.Call
    where: Address
    chain: tuple[Region, ...]
    known: bool

    @property
    def pops(self) -> bool:
        """True for a `matmul_pop`."""
        return self.event.kind == "pop"

    @property
    def key(self) -> Key | None:
        """The accumulator, where it is known."""
        mxu, at = integer(self.where.mxu), self.where.at
        if mxu is None:
            return None
        if isinstance(at, Linear):
            number = at.number
            return (mxu, Linear(at.terms, at.rest) if number is None else number)
        number = integer(at)
        return (mxu, number) if number is not None else None

    @property
    def address(self) -> ast.expr:
        """The expression of the address. Raises ValueError where it is not written."""
        return _given(self.call, 0, "acc_addr")

    @property
    def shape(self) -> ast.expr | None:
        """The expression of the shape that is popped."""
        return argument(self.call, 1, "shape") if self.pops else None

    @property
    def dtype(self) -> ast.expr | None:
        """The expression of the dtype that is popped."""
        return argument(self.call, 2, "dtype") if self.pops else None

    @property
    def mxu(self) -> ast.expr | None:
        """The expression of the MXU index."""
        return argument(self.call, 3 if self.pops else 2, "mxu_index")

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions that are running, outermost first."""
        return tuple(r.node for r in self.chain if isinstance(r.node, FUNCTIONS))


def integer(value: object) -> int | None:
    """The integer that a value is known to be."""
    return value.value if isinstance(value, Known) and type(value.value) is int else None


def order(key: Key) -> tuple[int, Linear]:
    """By MXU and address, those that are numbers first."""
    at = key[1] if isinstance(key[1], Linear) else Linear((), Fraction(key[1]))
    return key[0], at


def uses(trace: Trace) -> tuple[Use, ...]:
    """Each run of such a call in a walk, in order."""
    return tuple(_uses(trace.root, (), known=True))


def _uses(region: Region, chain: tuple[Region, ...], *, known: bool) -> Iterator[Use]:
    known = known and region.kind != "unknown"
    if region.kind == "body" and isinstance(region.node, FUNCTIONS):
        chain = (*chain, region)
    for item in region.items:
        if isinstance(item, Region):
            yield from _uses(item, chain, known=known)
        elif isinstance(item.how, Address) and item.call is not None:
            yield Use(item, item.call, item.how, chain, known)


def by_address(call: ast.Call) -> bool:
    """True for a partial application that names what only the API by address has."""
    return any(k.arg in ("acc_addr", "mxu_index", "shape", "dtype") for k in call.keywords)


def written(module: Facts) -> Iterator[ast.Call]:
    """The calls that are written by address, whether a walk reaches them or not."""
    for call in module.names.calls:
        name = module.names.qualified(call.func)
        if name in (ACC, POP) and takes_address(call, name):
            yield call


def handed_on(module: Facts) -> Iterator[ast.AST]:
    """The places that name one of the functions without calling it: `functools.partial(...)`."""
    for node in module.index.read:
        if module.names.qualified(node) not in (ACC, POP):
            continue
        around = module.names.parent[node]
        called = isinstance(around, ast.Call) and around.func is node
        if not called and not isinstance(around, ast.Attribute | ast.Assign):
            yield node


def _given(call: ast.Call, position: int, name: str) -> ast.expr:
    found = argument(call, position, name)
    if found is None:
        raise ValueError(f"the call has no {name}")
    return found
