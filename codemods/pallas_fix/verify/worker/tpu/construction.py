"""`pltpu.ACC` as people write it, with the MXU index or without, in whatever form."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

_NAMES = re.compile(
    r"(?:TPU_?|MXU_?)?ACC(?:UM(?:ULATORS?)?)?(?:_?(?:MEM|MEMORY|SPACE|REF|[01]))*"
    r"|(?:TPU|MXU|Tpu|Mxu)?Acc(?:um|umulator)?(?:Memory|Space|Scratch)*"
)
"""Names that no jax has, which people write for it by analogy with the other spaces."""

_OF_MEMORY_SPACE = ("ACC", "ACCUM", "ACCUMULATOR", "ACCUMULATORS", "MXU_ACC", "TPU_ACC", "ACC_MEM")
"""Those of an enum; it has no way to be asked for a name that it does not know."""

_INDEX = ("mxu_id", "mxu_index", "mxu", "index")


class _Names(type):
    def __getattr__(cls, name: str) -> Any:
        if name.isupper():
            return cls
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")


class AnyAcc(metaclass=_Names):
    """Accumulator memory of the MXU `mxu_id`; None if that is not said.

    With a shape it makes the type of a ref at once: `ACC(0)(shape, dtype)`, `ACC(shape, dtype)`
    and `ACC(0, shape, dtype)` all do.
    """

    mxu_id: int | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        space = super().__new__(cls)
        named = [kwargs.pop(name) for name in _INDEX if name in kwargs]
        given = list(args)
        if given and isinstance(given[0], int):
            named.append(given.pop(0))
        space.mxu_id = named[0] if named else None
        return space(*given, **kwargs) if given or kwargs else space

    def __call__(self, shape: Any, dtype: Any = jnp.float32) -> Any:
        return replace(pltpu.VMEM(tuple(shape), jnp.dtype(dtype)), memory_space=self)

    def __matmul__(self, mesh: Any) -> AnyAcc:
        return self


def accept_names() -> None:
    """Let jax know accumulator memory by the names that people think it has."""
    for module in (pl, pltpu):
        vars(module)["__getattr__"] = _asking(module)
        if hasattr(module, "MemorySpace"):
            for name in _OF_MEMORY_SPACE:
                setattr(module.MemorySpace, name, AnyAcc)


def accept_blocks() -> None:
    """Take accumulator memory in a `pl.BlockSpec` for the memory that blocks live in."""
    finish = getattr(pl.BlockSpec, "__post_init__", lambda spec: None)

    def post_init(spec: Any) -> None:
        finish(spec)
        if spec.memory_space is AnyAcc or isinstance(spec.memory_space, AnyAcc):
            spec.memory_space = None

    pl.BlockSpec.__post_init__ = post_init


def _asking(module: ModuleType) -> Callable[[str], Any]:
    known: Callable[[str], Any] | None = vars(module).get("__getattr__")

    def ask(name: str) -> Any:
        if _NAMES.fullmatch(name):
            return AnyAcc
        if known is not None:
            return known(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    return ask
