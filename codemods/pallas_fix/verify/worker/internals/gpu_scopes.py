"""Scopes of accumulators that jax lowers and its interpreter does not know, in those that it does.

The interpreter allocates accumulators apart from all else, and does not know `pl.run_state`
(`_interpret_run_scoped_p` of jax/_src/pallas/mosaic_gpu/interpret/jaxpr_interpret.py). What an
accumulator begins with is its `_init` (jax/_src/pallas/mosaic_gpu/core.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

Scope = Callable[..., Any]


def stand_ins() -> dict[str, Scope]:
    """The functions of `jax.experimental.pallas` that are replaced, by name."""
    scoped = run_scoped(pl.run_scoped)
    return {"run_scoped": scoped, "run_state": run_state(pl.run_state, scoped)}


def run_scoped(original: Scope) -> Scope:
    """`pl.run_scoped`, with the accumulators in a scope of their own, inside of the other."""

    @functools.wraps(original)
    def stand_in(body: Callable[..., Any], *types: Any, **options: Any) -> Any:
        places = [place for place, one in enumerate(types) if isinstance(one, plgpu.ACC)]
        collective = options.get("collective_axes")
        if collective or not places or len(places) == len(types):
            return original(body, *types, **options)
        accumulators = [types[place] for place in places]
        others = [one for place, one in enumerate(types) if place not in places]

        def outer(*refs: Any, **named: Any) -> Any:
            def inner(*accumulated: Any) -> Any:
                rest = iter(refs)
                given = dict(zip(places, accumulated, strict=True))
                merged = [given[n] if n in given else next(rest) for n in range(len(types))]
                return body(*merged, **named)

            return original(inner, *accumulators)

        return original(outer, *others, **options)

    return stand_in


def run_state(original: Scope, scoped: Scope) -> Scope:
    """`pl.run_state`, which for accumulators is a scope that stores first and loads at the end.

    `scoped` is `pl.run_scoped`.
    """

    @functools.wraps(original)
    def stand_in(body: Callable[[Any], None]) -> Callable[[Any], Any]:
        run = original(body)

        @functools.wraps(run)
        def wrapped(state: Any) -> Any:
            leaves, tree = jax.tree.flatten(state)
            if not leaves or not all(_initialized(leaf) for leaf in leaves):
                return run(state)

            def scope(*accumulators: Any) -> Any:
                for accumulator, leaf in zip(accumulators, leaves, strict=True):
                    accumulator[...] = leaf._init
                body(jax.tree.unflatten(tree, accumulators))
                return jax.tree.unflatten(tree, [one[...] for one in accumulators])

            return scoped(scope, *(plgpu.ACC(leaf.shape, leaf.dtype) for leaf in leaves))

        return wrapped

    return stand_in


def _initialized(leaf: Any) -> bool:
    """True for `plgpu.ACC.init(...)`."""
    return isinstance(leaf, plgpu.ACC) and isinstance(leaf._init, jax.Array)
