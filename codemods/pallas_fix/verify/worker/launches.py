"""Stands in for the launches of Pallas where there is no device to launch on.

A launch inside a program that is being traced stays what it is. One that the user's code makes
eagerly (at import, in a test, in `main`) cannot run here: it is traced on its own, kept for the
later stages, and answered with zeros. `interpret=` is dropped: the target would not interpret.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

MOST_PROGRAMS = 32
"""Eager launches kept for compiling; a loop of launches says nothing new after that."""


_NOT_OF_NUMBERS = (NameError, AttributeError, ImportError, SyntaxError, TypeError, MemoryError)


class Program:
    """A function to compile, with the shapes and dtypes of its arguments."""

    def __init__(self, function: Callable[..., Any], avals: list[Any]) -> None:
        self.function = function
        self.avals = avals
        self.traced = jax.jit(function).trace(*avals)


class Launches:
    """The stand-ins. While `eager` is true, launches are collected in `programs`."""

    def __init__(self) -> None:
        self.eager = False
        self.programs: list[Program] = []
        self.errors: list[BaseException] = []

    def install(self, target: dict[str, Any]) -> None:
        """Put the stand-ins where users find the launches."""
        import jax._src.pallas.pallas_call as private

        pl.pallas_call = private.pallas_call = self._stand_in(pl.pallas_call)
        pl.kernel = self._stand_in(pl.kernel)
        if target["platform"] == "gpu":
            with suppress(ImportError):  # Triton kernels do without what Mosaic GPU imports
                from jax.experimental.pallas import mosaic_gpu

                mosaic_gpu.kernel = self._stand_in(mosaic_gpu.kernel)

    def only_misses_numbers(self, error: BaseException) -> bool:
        """True if the code that an error comes from may only have missed the kernels' numbers.

        So it launched something, the error did not arise in a launch, and it is not of a kind
        that has nothing to do with numbers.
        """
        if not self.programs or isinstance(error, _NOT_OF_NUMBERS):
            return False
        seen: BaseException | None = error
        while seen is not None:
            if any(seen is known for known in self.errors):
                return False
            seen = seen.__cause__ or seen.__context__
        return True

    def _stand_in(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(launch)
        def build(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("interpret", None)
            body = args[0] if args else kwargs.get("kernel", kwargs.get("body"))
            built = launch(*args, **kwargs)
            if body is None:
                return lambda body: self._operator(built(body))
            return self._operator(built)

        return build

    def _operator(self, built: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(built)
        def operate(*operands: Any, **kwargs: Any) -> Any:
            if not self.eager:
                return built(*operands, **kwargs)
            self.eager = False
            try:
                program = Program(lambda *arrays: built(*arrays, **kwargs), _avals(operands))
            except BaseException as error:
                self.errors.append(error)
                raise
            finally:
                self.eager = True
            if len(self.programs) < MOST_PROGRAMS:
                self.programs.append(program)
            return jax.tree.map(
                lambda out: jnp.zeros(out.shape, out.dtype), program.traced.out_info
            )

        return operate


def _avals(operands: tuple[Any, ...]) -> list[Any]:
    return jax.tree.map(_aval, list(operands))


def _aval(value: Any) -> Any:
    return jax.ShapeDtypeStruct(jnp.shape(value), jnp.result_type(value))


def _zeros(out: Any) -> Any:
    return jnp.zeros(out.shape, out.dtype)
