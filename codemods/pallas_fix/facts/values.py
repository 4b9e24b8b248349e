"""What the walk through a kernel knows of values, and what it writes down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from pallas_fix.facts.allocations import Allocation, Slot
from pallas_fix.facts.constants import Value as Constant
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function


@dataclass(eq=False, slots=True)
class Ref:
    """One ref that a kernel sees.

    `kind` says where it comes from: `scratch` (a slot of a launch), `scoped` (an argument of
    `run_scoped`, `with_scoped`), `empty` (`jax.empty_ref` and its kin), `operand` (an input or
    output of a launch), `block` (a window of a pipeline), `param` (a parameter of a function
    that nothing in the file calls). `node` creates it, or is the parameter.
    """

    kind: str
    node: ast.AST
    allocation: Allocation | None = None
    slot: Slot | None = None
    launch: Launch | None = None
    name: str = ""
    output: int | None = None

    @property
    def space(self) -> str | None:
        """The canonical memory space where it is known."""
        return self.allocation.space if self.allocation else None


@dataclass(frozen=True, slots=True)
class View:
    """`ref.at[index]` or another transform of a ref; `whole` where it changes nothing."""

    ref: Ref
    node: ast.expr
    whole: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """The array that `ref[index]` read."""

    ref: Ref
    node: ast.expr
    whole: bool


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple or list. With `open_front` an unknown number of values comes before `items`."""

    items: tuple[object, ...]
    open_front: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A dict with known keys."""

    items: dict[object, object]


@dataclass(eq=False, slots=True)
class Frame:
    """The local variables of one call of a function."""

    node: ast.AST
    parent: Frame | None
    variables: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of the file with what is bound to it already.

    `runs` names the way in which calling it runs the body (`loop` for a pipeline).
    """

    node: Function
    frame: Frame | None
    args: tuple[object, ...] = ()
    kwargs: tuple[tuple[str, object], ...] = ()
    scoped: tuple[object, ...] = ()
    scoped_kwargs: tuple[tuple[str, object], ...] = ()
    runs: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """A constant. `node` is the expression that made it, and `parts` are those that this one
    was worked out from, with their values, where that is written out."""

    value: Constant
    node: ast.expr | None = field(default=None, compare=False, repr=False)
    parts: tuple[tuple[ast.expr, Known], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Address:
    """How jax until 0.11.1 names an accumulator: the number of its first register on an MXU.

    `at` and `mxu` are the values of the arguments, `shape` is that of a pop, with None for each
    dimension that is not known, and `rows` (`facts.linear`) its first one.
    """

    at: object
    mxu: object
    shape: tuple[int | None, ...] | None = None
    rows: object = None


@dataclass(frozen=True, slots=True)
class Program:
    """`pl.program_id(axis)`; `count` for `pl.num_programs(axis)`, `offset` added to it."""

    axis: int
    count: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class GridTest:
    """A test of the position in the grid: at the `first` or `last` step of an axis, or other.

    `step` is the step where it is written as a number.
    """

    axis: int
    edge: str
    step: int | None = None


class Other:
    """A value of which nothing is known."""


OTHER = Other()


@dataclass(eq=False, slots=True)
class Event:
    """Something that a kernel does with a ref or the MXU, in the order of execution.

    Kinds: `push`, `acc`, `fifo` (a matmul into the result FIFO), `pop`, `load`, `store`,
    `update` (augmented store), `view`, `meta` (shape or dtype only), `wgmma`, `wgmma_load`,
    `wgmma_store`, `wgmma_operand` (a ref multiplied by `wgmma`), `escape` (handed to code that is
    not known). `how` holds the value through which the ref was reached.
    """

    kind: str
    node: ast.AST
    ref: Ref | None
    how: object = None
    functions: tuple[Function, ...] = ()
    index: ast.expr | None = None
    value: ast.expr | None = None
    whole: bool = True
    mxu: Constant = None
    register: Constant = None
    call: ast.Call | None = None
    site: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class Region:
    """A stretch of the walk: the events and regions in it, in order.

    Kinds: `body` (a function run once), `loop` (traced: any number of times), `unrolled` (one
    pass of a Python loop), `branch` (may be skipped), `unknown` (code that may run or not, at a
    time that is not known). `test` is the condition where it is known, `at` the call that made
    the walk enter.
    """

    kind: str
    node: ast.AST
    items: list[Event | Region] = field(default_factory=list)
    test: GridTest | None = None
    at: ast.AST | None = None

    def events(self) -> Iterator[Event]:
        """All events, in order."""
        for item in self.items:
            if isinstance(item, Event):
                yield item
            else:
                yield from item.events()


@dataclass(eq=False, slots=True)
class Trace:
    """One walk: a launch with its kernel, or a function that no launch of the file reaches.

    `parameters` are the names to which the launch binds refs by position, in order (those that
    a partial application has bound are left out).
    """

    root: Region
    function: Function
    launch: Launch | None
    refs: list[Ref] = field(default_factory=list)
    parameters: tuple[str, ...] = ()
    _uses: dict[Ref, tuple[Event, ...]] | None = None

    def uses(self, ref: Ref) -> tuple[Event, ...]:
        """The events of one ref, in order. The walk is over: they are sorted out once."""
        if self._uses is None:
            found: dict[Ref, list[Event]] = {}
            for event in self.root.events():
                if event.ref is not None:
                    found.setdefault(event.ref, []).append(event)
            self._uses = {one: tuple(events) for one, events in found.items()}
        return self._uses.get(ref, ())
