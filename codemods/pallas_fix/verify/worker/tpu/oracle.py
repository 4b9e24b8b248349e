"""What the author of a broken kernel meant by its accumulators, so that it has numbers.

`matmul_acc_lhs` adds a product to a ref in any memory, and `matmul_pop` reads and zeroes one.
Accumulators are refs like others: they can be read again, stored to and indexed, and have the
shape of what is summed in them. Sums are made in float32 (int32), and rounded to the dtype of the
ref where they are read. What was never written counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .construction import AnyAcc, accept_blocks, accept_names
from .contents import wide
from .indexing import Index
from .kernel import Kernels
from .memories import Memories, Memory, Part
from .on_memories import OnMemories
from .on_refs import OnRefs
from .products import same_but_ones
from .weights import staging_register

StandIns = dict[ModuleType, dict[str, Callable[..., Any]]]


class Oracle:
    """Answers for what jax refuses in the kernel that is being traced."""

    def __init__(self, kernels: Kernels, site: Callable[[], str]) -> None:
        self._kernels = kernels
        self._memories = OnMemories(kernels, site)
        self._refs = OnRefs(kernels, site, jax.ref.get, jax.ref.set)
        self._jax: dict[str, Callable[..., Any]] = {
            "get": jax.ref.get,
            "set": jax.ref.set,
            "astype": jnp.astype,
            "load": pltpu.load,
            "store": pltpu.store,
            "new_ref": jax.new_ref,
            "empty_ref_like": pl.empty_ref_like,
            "matmul_acc_lhs": pltpu.matmul_acc_lhs,
            "matmul_pop": pltpu.matmul_pop,
        }

    def space(self) -> Memories:
        """The accumulator memory of a kernel that is about to be traced."""
        return Memories(self._kernels.chip.mxus, self._memories)

    def stand_ins(self, empty_ref: Callable[..., Any]) -> StandIns:
        """By module of jax and name: what replaces its functions; `empty_ref` is that of others."""

        def new(ty: Any, memory_space: Any = None, **kwargs: Any) -> Any:
            made = self._allocated(ty, memory_space)
            return empty_ref(ty, memory_space=memory_space, **kwargs) if made is None else made

        functions: StandIns = {
            jax: {"empty_ref": new, "new_ref": self.new_ref},
            jax.ref: {"get": self.get, "set": self.set},
            jnp: {"astype": self.astype},
            pl: {"empty_ref_like": self.empty_ref_like},
            pltpu: {"load": self.load, "store": self.store},
        }
        if hasattr(pltpu, "ACC"):
            functions[pltpu]["ACC"] = AnyAcc
        return functions

    def install(self) -> None:
        """Accept what jax has no function for, that a stand-in could replace."""
        if hasattr(pltpu, "ACC"):  # a jax without it has kernels that ask for it, and do without
            accept_names()
        accept_blocks()

    def accumulate(self, acc: Any, lhs: Any, load: Any) -> None:
        """`matmul_acc_lhs(acc, lhs, load)`. Raises what jax raises for what is no accumulator."""
        space, register = self._space, staging_register(load)
        meant = self._meant(space, acc)
        if isinstance(meant, Part):
            self._memories.accumulate(meant, jnp.asarray(lhs), register)
        elif meant is None:
            self._jax["matmul_acc_lhs"](acc, lhs, load_staged_rhs=load)
        else:
            self._refs.accumulate(space, meant, jnp.asarray(lhs), register)

    def pop(self, acc: Any) -> Any:
        """`matmul_pop(acc)`. Raises what jax raises for what is no accumulator."""
        space = self._space
        meant = self._meant(space, acc)
        if isinstance(meant, Part):
            return self._memories.pop(meant)
        return self._jax["matmul_pop"](acc) if meant is None else self._refs.pop(space, meant)

    def register(self, load: Any, mxu: int) -> int | None:
        """The staging register that a `load_staged_rhs` means. Raises TypeError for a bool."""
        register = staging_register(load)
        if isinstance(register, bool):
            raise TypeError("load_staged_rhs must be an integer or None.")
        return register

    def new_ref(self, init_val: Any, *, memory_space: Any = None, **kwargs: Any) -> Any:
        """`jax.new_ref`, also in accumulator memory."""
        made = self._allocated(init_val, memory_space)
        if made is None:
            return self._jax["new_ref"](init_val, memory_space=memory_space, **kwargs)
        made[...] = init_val
        return made

    def empty_ref_like(self, x: Any) -> Any:
        """`pl.empty_ref_like`, also in accumulator memory."""
        made = self._allocated(x, None)
        return self._jax["empty_ref_like"](x) if made is None else made

    def load(self, ref: Any, **kwargs: Any) -> Any:
        """`pltpu.load`."""
        if isinstance(ref, Memory | Part):
            return ref[...]
        value = self._jax["load"](ref, **kwargs)
        space = self._tracing
        return value if space is None else space.values.loaded(value, ref, ...)

    def store(self, ref: Any, val: Any, **kwargs: Any) -> None:
        """`pltpu.store`."""
        if isinstance(ref, Memory | Part):
            ref[...] = val
        else:
            self._jax["store"](ref, self._stored(ref, ..., val), **kwargs)

    def get(self, ref: Any, idx: Any = None) -> Any:
        """`jax.ref.get`, which `ref[idx]` is: a narrow accumulator is rounded as it is read."""
        space = self._tracing
        if space is None:
            return self._jax["get"](ref, idx)
        whole = _whole(ref, idx)
        if whole and space.is_numbered(ref) and wide(ref.dtype) != ref.dtype:
            value = self._refs.load(space, ref)
        else:
            value = self._jax["get"](ref, idx)
        return space.values.loaded(value, ref, ... if whole else idx)

    def set(self, ref: Any, idx: Any, value: Any) -> None:
        """`jax.ref.set`, which `ref[idx] = value` is: sums are rounded to the dtype of the ref."""
        self._jax["set"](ref, idx, self._stored(ref, idx, value))

    def astype(self, x: Any, dtype: Any, **kwargs: Any) -> Any:
        """`jax.numpy.astype`: a sum is rounded once, not to the dtype of its accumulator before."""
        space = self._tracing
        exact = None if space is None else space.values.exact(x)
        return self._jax["astype"](x if exact is None else exact, dtype, **kwargs)

    @property
    def _space(self) -> Memories:
        space = self._kernels.current.space
        assert isinstance(space, Memories)
        return space

    @property
    def _tracing(self) -> Memories | None:
        """As `_space`; None outside of a kernel that uses the MXU explicitly."""
        return self._space if self._kernels.emulating else None

    def _allocated(self, ty: Any, memory_space: Any) -> Memory | None:
        """A memory of that type, if it is to be in accumulator memory."""
        where = getattr(ty, "memory_space", None) if memory_space is None else memory_space
        if where is AnyAcc:
            where = AnyAcc()
        if not self._kernels.inside or not isinstance(where, AnyAcc):
            return None
        return self._space.allocate(where.mxu_id, ty.shape, ty.dtype)

    def _meant(self, space: Memories, acc: Any) -> Any:
        """The part of a memory, or the ref, that `acc` is or was loaded from; else None."""
        if isinstance(acc, Memory):
            return Part(acc, ())
        if isinstance(acc, Part) or _is_ref(acc):
            return acc
        origin = space.values.origin(acc)
        if origin is None:
            return None
        ref, index = origin
        return ref if isinstance(ref, Part) or index is ... else ref.at[index]

    def _stored(self, ref: Any, idx: Any, value: Any) -> Any:
        """The value that is meant to be stored: that of a sum fits, whatever its dtype and ones."""
        space = self._tracing
        exact = None if space is None else space.values.exact(value)
        if exact is None:
            return value
        value = exact.astype(ref.dtype)
        shape = Index((... if idx is None else idx,)).shape(ref.shape)
        return value.reshape(shape) if same_but_ones(shape, value.shape) else value


def _is_ref(value: Any) -> bool:
    """True for a ref and for a part of one (`TransformedRef`, which has no type for jax)."""
    if hasattr(value, "transforms"):
        return hasattr(value, "ref")
    return isinstance(jax.typeof(value), jax.ref.AbstractRef)


def _whole(ref: Any, idx: Any) -> bool:
    """True if an index surely names all of a ref."""
    if idx is None or idx is ...:
        return True
    try:
        return Index((idx,)).is_whole(ref.shape)
    except (TypeError, IndexError):
        return False
