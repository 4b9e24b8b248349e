"""Keeps what eager launches compute, for code that returns no arrays: tests, scripts, `main`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
from jax.experimental import pallas as pl

MOST_OUTPUTS = 64


class Outputs:
    """The outputs of the launches that ran eagerly, in order, up to `MOST_OUTPUTS`."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def install(self, target: dict[str, Any]) -> None:
        """Stand before the launches, whatever they are by now."""
        import jax._src.pallas.pallas_call as private

        pl.pallas_call = private.pallas_call = self._stand_in(pl.pallas_call)
        pl.kernel = self._stand_in(pl.kernel)
        if target["platform"] == "gpu":  # its import takes seconds
            with suppress(ImportError):
                from jax.experimental.pallas import mosaic_gpu

                mosaic_gpu.kernel = self._stand_in(mosaic_gpu.kernel)

    def _stand_in(self, launch: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(launch)
        def build(*args: Any, **kwargs: Any) -> Any:
            body = args[0] if args else kwargs.get("kernel", kwargs.get("body"))
            built = launch(*args, **kwargs)
            if body is None:
                return lambda body: self._operator(built(body))
            return self._operator(built)

        return build

    def _operator(self, built: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(built)
        def operate(*operands: Any, **kwargs: Any) -> Any:
            results = built(*operands, **kwargs)
            leaves = jax.tree.leaves(results)
            concrete = not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
            if concrete and len(self.kept) + len(leaves) <= MOST_OUTPUTS:
                self.kept.extend(leaves)
            return results

        return operate
