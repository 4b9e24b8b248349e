"""Stands before the launches of Pallas: each is noted, with the call that led to it, and runs."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

import jax
from jax.experimental import pallas as pl

from .calls import Calls
from .functions import Functions
from .journal import Journal
from .simulation import Simulation
from .writing import Refusal, Writer

Build = Callable[[], Callable[..., Any]]


@dataclass(frozen=True)
class Launch:
    """A launch: the function of Pallas, the body of the kernel, what else it was given."""

    api: str
    platform: str
    body: Any
    options: dict[str, Any]

    @property
    def grid(self) -> list[Any] | None:
        """The sizes of the grid, None for one that is traced; no list where there is no grid."""
        spec = self.options.get("grid_spec")
        grid = self.options.get("grid") if spec is None else spec.grid
        if grid is None:
            return None
        sizes = [grid] if isinstance(grid, int) else list(grid)
        return [size if isinstance(size, int) else None for size in sizes]


class Launches:
    """The stand-ins."""

    def __init__(
        self, root: str, journal: Journal, functions: Functions, writer: Writer, run: Simulation
    ) -> None:
        self._root = root + os.sep
        self._journal = journal
        self._functions = functions
        self._writer = writer
        self._simulation = run
        self._calls = Calls(functions)
        self._here = threading.local()
        self._known: set[tuple[Any, ...]] = set()

    def install(self) -> None:
        """Put the stand-ins where users find the launches."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `core_map` is deprecated since jax 0.11
            pl.core_map = self._core_map(pl.core_map)
        pl.pallas_call = self._launcher("pallas_call", pl.pallas_call)
        pl.kernel = self._launcher("kernel", pl.kernel)

    def install_gpu(self, module: ModuleType) -> None:
        """The same for `jax.experimental.pallas.mosaic_gpu`, once it is imported."""
        vars(module)["kernel"] = self._launcher("kernel", vars(module)["kernel"], "gpu")

    def _launcher(
        self, api: str, function: Callable[..., Any], only: str = ""
    ) -> Callable[..., Any]:
        @functools.wraps(function)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            body = args[0] if args else kwargs.get("kernel", kwargs.get("body"))
            platform = only or self._simulation.platform(kwargs)
            make = function if only else self._simulation.function(platform, api) or function
            if not callable(body) and not isinstance(body, Sequence):
                return lambda body: self._operator(
                    Launch(api, platform, body, kwargs), lambda: make(*args, **kwargs)(body)
                )
            launch = Launch(api, platform, body, kwargs)
            return self._operator(launch, lambda: make(*args, **kwargs))

        return stand_in

    def _core_map(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            options = kwargs if "mesh" in kwargs else {"mesh": args[0]} | kwargs
            platform = self._simulation.platform(options)
            make = self._simulation.function(platform, "core_map") or function

            def launch(body: Any) -> Any:
                with self._noted(Launch("core_map", platform, body, options), (), sys._getframe(1)):
                    result = make(*args, **kwargs)(body)
                    self._simulation.ended(platform, result)
                    return result

            return launch

        return stand_in

    def _operator(self, launch: Launch, build: Build) -> Callable[..., Any]:
        """What jax makes of a launch, noted when it is called, or where it cannot be made."""
        try:
            with self._simulation.running(launch.platform):
                built = build()
        except BaseException:
            with self._noted(launch, (), sys._getframe(2)):
                raise

        @functools.wraps(built)
        def operate(*operands: Any, **kwargs: Any) -> Any:
            with self._noted(launch, operands, sys._getframe(1)):
                results = built(*operands, **kwargs)
                self._simulation.ended(launch.platform, results)
                return results

        return operate

    @contextmanager
    def _noted(self, launch: Launch, operands: tuple[Any, ...], frame: FrameType) -> Iterator[None]:
        """Note a launch, and then the files whose functions it enters, until it has run."""
        if getattr(self._here, "inside", False):
            yield
            return
        note = self._note(launch, operands, frame)
        self._here.inside = True
        if note is not None:
            self._journal.tell("launch", **note)
            self._functions.again()
            self._functions.seen = seen = set(note["files"])
        try:
            with self._simulation.running(launch.platform):
                yield
        finally:
            self._here.inside = False
            if note is not None:
                self._functions.seen = None
                self._journal.tell("launch", **note | {"files": sorted(seen)})

    def _note(
        self, launch: Launch, operands: tuple[Any, ...], frame: FrameType
    ) -> dict[str, Any] | None:
        """What is told of a launch; None for one that has been told of."""
        frames = self._calls.project(frame)
        case = refused = ""
        try:
            case = self._calls.case(frames)
        except Refusal as refusal:
            refused = str(refusal)
        name, where = self._place(launch.body)
        shapes = [self._shape(leaf) for leaf in jax.tree.leaves(operands)]
        note = {
            "api": launch.api,
            "kernel": name,
            "where": where,
            "grid": launch.grid,
            "operands": shapes,
            "case": case,
            "refused": refused,
        }
        known = (name, where, *shapes, str(launch.grid), case, refused)
        if known in self._known:
            return None
        self._known.add(known)
        files = {self._functions.file(frame.f_code) for frame in frames}
        kernel = where.rpartition(":")[0]
        if os.path.isfile(self._root + kernel):
            files.add(kernel)
        return note | {"files": sorted(files)}

    def _shape(self, operand: Any) -> str:
        try:
            return self._writer.aval(operand)
        except (Refusal, TypeError):
            return type(operand).__name__

    def _place(self, body: Any) -> tuple[str, str]:
        """The name of a kernel, and its `file:line`, relative to the project or to its library."""
        while isinstance(body, Sequence) and body:
            body = body[0]
        for _ in range(32):
            inner = _inner(body)
            if inner is None:
                break
            body = inner
        code = getattr(body, "__code__", None)
        name = str(getattr(body, "__name__", type(body).__name__))
        if code is None:
            return name, ""
        file = self._functions.file(code) or _in_library(code.co_filename)
        return name, f"{file}:{code.co_firstlineno}"


def _inner(body: Any) -> Any:
    """What a body wraps, if it does: by itself, or as `pl.with_scoped` does in a closure."""
    if isinstance(body, functools.partial):
        return body.func
    code = getattr(body, "__code__", None)
    if code is None or not code.co_filename.endswith(_WITH_SCOPED):
        return getattr(body, "__wrapped__", None)
    held = inspect.getclosurevars(body).nonlocals.values()
    return next((one for one in held if callable(one)), None)


_WITH_SCOPED = os.path.join("jax", "_src", "pallas", "helpers.py")


def _in_library(path: str) -> str:
    """The part of a path that is the same everywhere: below the folder of packages."""
    for folder in ("site-packages", "dist-packages"):
        _, found, inside = path.rpartition(f"{os.sep}{folder}{os.sep}")
        if found:
            return inside
    return os.path.basename(path)
