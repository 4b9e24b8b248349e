"""What the parts of the walk through a kernel ask of each other."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pallas_fix.facts.allocations import Allocations, Slot
from pallas_fix.facts.constants import UNKNOWN, Constants
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.linear import Linear
from pallas_fix.facts.names import Names
from pallas_fix.facts.values import OTHER, Callee, Event, Frame, GridTest, Known, Ref


@dataclass(frozen=True, slots=True)
class Runner:
    """What runs the function that it is given: `pl.when(test)`, `pl.loop(0, n)`."""

    run: Callable[[Callee], object]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The evaluated arguments of a call."""

    positional: tuple[object, ...]
    keywords: dict[str, object]

    def get(self, position: int | None, name: str) -> object:
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return OTHER


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`emit_pipeline(body, ...)`: calling it runs the body in a loop on windows of its refs."""

    run: Callable[[ast.Call, Arguments], object]


class Walk(ABC):
    """A walk, as the code that knows single calls sees it."""

    names: Names
    constants: Constants
    allocations: Allocations
    at: ast.AST | None

    @abstractmethod
    def eval(self, expr: ast.expr | None, frame: Frame | None) -> object: ...

    @abstractmethod
    def call(self, callee: Callee, args: Sequence[object], kwargs: dict[str, object]) -> object: ...

    @abstractmethod
    def emit(self, kind: str, node: ast.AST, ref: Ref | None, **more: object) -> Event: ...

    @abstractmethod
    def escape(self, value: object, node: ast.AST) -> None: ...

    @abstractmethod
    def scratch(self, slot: Slot, launch: Launch | None, kind: str = "scratch") -> object: ...

    @abstractmethod
    def inside(
        self, kind: str, node: ast.AST, test: GridTest | None = None
    ) -> AbstractContextManager[None]: ...

    @abstractmethod
    def arguments(self, expr: ast.Call, frame: Frame | None) -> Arguments | None: ...

    @abstractmethod
    def number(self, expr: ast.expr, value: object) -> Linear | None: ...

    def integer(self, expr: ast.expr | None, frame: Frame | None) -> object:
        """The constant that an argument is, UNKNOWN where it is not one, None where absent."""
        if expr is None:
            return None
        value = self.eval(expr, frame)
        if isinstance(value, Known):
            return value.value
        return UNKNOWN


Handler = Callable[[Walk, ast.Call, Frame | None], object]
"""What a call of one known function does."""
