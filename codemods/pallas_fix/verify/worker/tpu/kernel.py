"""The kernel that is being traced, and how its MXU operations reach the machine, in order."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from ..chips import Unavailable
from .accumulators import Space
from .machine import Chip, Machine

Host = Callable[..., Any]
"""What an operation does on the host: takes the machine and arrays, returns an array or None."""


class UsesMxu(BaseException):
    """A kernel that was traced as an ordinary one turns out to use the MXU explicitly.

    No Exception, so that the user's code does not catch it.
    """


class NeedsRef(BaseException):
    """A kernel allocates one more ref of that type, beside accumulators; no Exception, as above."""

    def __init__(self, kind: Any) -> None:
        super().__init__(kind)
        self.kind = kind


MOST_REFS = 64
"""Refs that a kernel allocates one by one; each costs one more trace of its body."""


@dataclass(frozen=True)
class Kernel:
    """A kernel while its body is traced.

    `token` is a ref in SMEM. Every operation reads a number from it and writes the next one, which
    orders the operations as the program does, through loops, branches and pipelines: the
    interpreter keeps loads and stores in order, but not the callbacks of others.
    `core` is the index of the core that runs it, traced where there are several. `refs` are those
    for what it allocates itself, beside accumulators, with their types, in order.
    """

    token: Any
    core: Any
    space: Space
    refs: Iterator[tuple[Any, Any]] = field(default_factory=lambda: iter(()))

    def allocate(self, kind: Any) -> Any:
        """The next ref, which must be of that type. Raises NeedsRef if it is not there yet."""
        there, ref = next(self.refs, (None, None))
        if there != kind:
            raise NeedsRef(kind)
        return ref


class Kernels:
    """The machines, one a core, and the kernel that is being traced."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.machines: dict[int, Machine] = {}
        self.on_enter: Callable[[Machine], None] = lambda machine: None
        self.make_space: Callable[[], Space] = lambda: Space(chip.mxus, chip.rows)
        self._lock = threading.Lock()
        self._tracing: list[Kernel | None] = []
        self._serial = itertools.count(1)
        self._serials = jax.make_user_context(0)
        self._run_scoped = pl.run_scoped

    @property
    def inside(self) -> bool:
        """True while the body of a kernel is traced."""
        return bool(self._tracing)

    @property
    def emulating(self) -> bool:
        """True while the body of a kernel is traced that has a token."""
        return bool(self._tracing) and self._tracing[-1] is not None

    @property
    def current(self) -> Kernel:
        """The kernel that is being traced. Raises UsesMxu if it has no token yet."""
        kernel = self._tracing[-1]
        if kernel is None:
            raise UsesMxu
        return kernel

    def ordinary(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """The body of a kernel, which raises UsesMxu if it turns out to use the MXU explicitly."""

        @_named_as(body)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with self._trace(None):
                return body(*args, **kwargs)

        return traced

    def emulated(
        self,
        body: Callable[..., Any],
        core: Callable[[], Any],
        steps: int,
        arguments: Callable[[Space, tuple[Any, ...], dict[str, Any]], Any],
    ) -> Callable[..., Any]:
        """The body of a kernel with a token.

        `core` gives the index of the core, inside. `steps` is the rank of the grid: at its first
        point the kernel enters the machine. `arguments` completes the arguments of the body.
        """

        @_named_as(body)
        def traced(*args: Any, **kwargs: Any) -> Any:
            first = jnp.bool_(True)
            for axis in range(steps):
                first = first & (pl.program_id(axis) == 0)
            index = core()

            kinds: list[Any] = []

            def scope(token: Any, *refs: Any) -> Any:
                number = jax.ShapeDtypeStruct((), jnp.int32)
                token[0] = io_callback(self._enter, number, index, first)
                space = self.make_space()
                spare = iter(list(zip(kinds, refs, strict=True)))
                with self._trace(Kernel(token, index, space, spare)):
                    positional, named = arguments(space, args, kwargs)
                    return body(*positional, **named)

            while True:
                try:
                    return self._run_scoped(scope, pltpu.SMEM((1,), jnp.int32), *kinds)
                except NeedsRef as needs:
                    if len(kinds) == MOST_REFS:
                        raise Unavailable(
                            f"stage not available: the kernel allocates over {MOST_REFS} refs"
                        ) from None
                    kinds.append(needs.kind)

        return traced

    def do(self, host: Host, *arrays: Any, result: jax.ShapeDtypeStruct | None = None) -> Any:
        """Let the machine of this core do an operation when its turn has come; the result if any.

        `host(machine, *arrays)` is called with NumPy arrays.
        """
        kernel = self.current
        shapes = [jax.ShapeDtypeStruct((), jnp.int32)]
        if result is not None:
            shapes.append(result)

        def call(token: Any, core: Any, *values: Any) -> list[Any]:
            answer = host(self.machine(int(core)), *map(np.asarray, values))
            done = [np.int32(int(token) + 1)]
            return done if result is None else [*done, answer]

        done, *answer = io_callback(call, shapes, kernel.token[0], kernel.core, *arrays)
        kernel.token[0] = done
        return answer[0] if answer else None

    def machine(self, core: int) -> Machine:
        """The machine of a core, which is made when it is first asked for."""
        with self._lock:
            if core not in self.machines:
                self.machines[core] = Machine(self.chip)
            return self.machines[core]

    def _enter(self, core: Any, first: Any) -> Any:
        if bool(first):
            self.on_enter(self.machine(int(core)))
        return np.int32(0)

    @contextmanager
    def _trace(self, kernel: Kernel | None) -> Iterator[None]:
        """Trace a body: what jax caches of the functions that it calls holds for this one alone."""
        self._tracing.append(kernel)
        try:
            with self._serials(next(self._serial)):
                yield
        finally:
            self._tracing.pop()


def _named_as(body: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function look like `body` to jax, which tells kernels by name, file and line."""

    def rename(function: Callable[..., Any]) -> Callable[..., Any]:
        wrapped = functools.wraps(body)(function)
        inner = body
        while isinstance(inner, functools.partial):
            inner = inner.func
        wrapped.__name__ = getattr(inner, "__name__", "kernel")
        return wrapped

    return rename
