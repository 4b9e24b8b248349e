"""The operations of the explicit MXU API, both of its generations, on the emulated machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .accumulators import LANES, SUBLANES, Accumulator, View
from .kernel import Kernels
from .machine import Machine

NAMES = (
    "matmul_push_rhs",
    "matmul_acc_lhs",
    "matmul_pop",
    "matmul_lhs_fifo",
    "matmul_pop_fifo",
)
"""The operations, as in jax/_src/pallas/mosaic/primitives.py; FIFOs since jax 0.11.1."""


class Oracle(Protocol):
    """What the code before a repair means, where jax refuses it."""

    def accumulate(self, acc: Any, lhs: Any, load: Any) -> None:
        """`matmul_acc_lhs(acc, lhs, load)` on what is no accumulator, or on a part of one."""

    def pop(self, acc: Any) -> Any:
        """`matmul_pop(acc)` of what is no accumulator, or of a part of one."""

    def register(self, load: Any, mxu: int) -> int | None:
        """The staging register that a `load_staged_rhs` means, of any type."""


class Operations:
    """Stand-ins for the operations. Without an oracle jax itself checks their arguments."""

    def __init__(self, kernels: Kernels, site: Callable[[], str], oracle: Oracle | None) -> None:
        self._kernels = kernels
        self._site = site
        self._oracle = oracle
        self._jax = {name: getattr(pltpu, name) for name in NAMES if hasattr(pltpu, name)}
        self._run_scoped = pl.run_scoped
        self._by_ref = hasattr(pltpu, "ACC")

    def stand_ins(self) -> dict[str, Callable[..., Any]]:
        """By name: what replaces the operations that this jax has."""
        return {name: getattr(self, name) for name in self._jax}

    def matmul_push_rhs(
        self, rhs: Any, staging_register: int, mxu_index: int, *, transpose: bool = False
    ) -> None:
        """Fill a staging register."""
        if not self._kernels.inside:
            return self._jax["matmul_push_rhs"](
                rhs, staging_register, mxu_index, transpose=transpose
            )
        self._check("matmul_push_rhs", rhs, staging_register, mxu_index, transpose=bool(transpose))
        register, mxu = _static(staging_register=staging_register, mxu_index=mxu_index)
        site = self._site()

        def host(machine: Machine, value: np.ndarray[Any, Any]) -> None:
            machine.push(register, mxu, value, bool(transpose), site)

        return self._kernels.do(host, jnp.asarray(rhs))

    def matmul_acc_lhs(self, *args: Any, **kwargs: Any) -> None:
        """Multiply and accumulate: into a ref, or at an address of an MXU (until jax 0.11.1)."""
        acc = _first(args, kwargs, "acc", "acc_addr")
        if not self._kernels.inside:
            return self._jax["matmul_acc_lhs"](*args, **kwargs)
        if _is_address(acc):
            return self._accumulate_at(*args, **kwargs)
        if isinstance(acc, Accumulator):
            return self._accumulate_into(*args, **kwargs)
        return self._accumulate_elsewhere(*args, **kwargs)

    def matmul_pop(self, *args: Any, **kwargs: Any) -> Any:
        """Read and zero: a ref, or rows from an address of an MXU on (until jax 0.11.1)."""
        acc = _first(args, kwargs, "acc", "acc_addr")
        if not self._kernels.inside:
            return self._jax["matmul_pop"](*args, **kwargs)
        if _is_address(acc):
            return self._pop_at(*args, **kwargs)
        if isinstance(acc, Accumulator):
            return self._pop_from(*args, **kwargs)
        return self._pop_elsewhere(*args, **kwargs)

    def matmul_lhs_fifo(
        self, lhs: Any, mxu_index: int, *, load_staged_rhs: int | None = None
    ) -> None:
        """Multiply into the result FIFO. `True` is register 1, as bool is int for jax here."""
        self._check("matmul_lhs_fifo", lhs, mxu_index, load_staged_rhs=load_staged_rhs)
        (mxu,) = _static(mxu_index=mxu_index)
        load = None if load_staged_rhs is None else int(load_staged_rhs)
        site = self._site()

        def host(machine: Machine, value: np.ndarray[Any, Any]) -> None:
            machine.enqueue(mxu, value, load, site)

        return self._kernels.do(host, jnp.asarray(lhs))

    def matmul_pop_fifo(self, shape: tuple[int, int], dtype: Any, mxu_index: int) -> Any:
        """The oldest result in the FIFO."""
        self._check("matmul_pop_fifo", shape, dtype, mxu_index)
        (mxu,) = _static(mxu_index=mxu_index)
        result = jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(dtype))
        site = self._site()

        def host(machine: Machine) -> np.ndarray[Any, Any]:
            return machine.dequeue(mxu, result.shape, result.dtype, site)

        return self._kernels.do(host, result=result)

    def accumulate(self, mxu: int, row: Any, lhs: Any, load: int | None) -> None:
        """Accumulate from a row on, which may be traced."""
        site = self._site()

        def host(machine: Machine, at: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> None:
            machine.accumulate(mxu, int(at), value, load, site)

        self._kernels.do(host, jnp.int32(row), lhs)

    def pop(self, mxu: int, row: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """Pop `shape[:-1]` rows from a row on, which may be traced."""
        result = jax.ShapeDtypeStruct(tuple(shape), jnp.dtype(dtype))
        rows = math.prod(shape[:-1])
        site = self._site()

        def host(machine: Machine, at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return machine.pop(mxu, int(at), rows, result.dtype, site).reshape(result.shape)

        return self._kernels.do(host, jnp.int32(row), result=result)

    def product(self, mxu: int, lhs: Any, load: int | None, dtype: Any) -> Any:
        """The product alone, for what accumulates elsewhere."""
        result = jax.ShapeDtypeStruct((lhs.shape[0], self._kernels.chip.size), jnp.dtype(dtype))
        site = self._site()

        def host(machine: Machine, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return machine.product(mxu, value, load, site).astype(result.dtype)

        return self._kernels.do(host, lhs, result=result)

    def _accumulate_into(self, acc: Accumulator, lhs: Any, load_staged_rhs: Any = None) -> None:
        self._check_ref(acc, lambda ref: self._jax["matmul_acc_lhs"](ref, lhs, load_staged_rhs))
        load = self._register(load_staged_rhs, acc.mxu)
        self.accumulate(acc.mxu, acc.row, jnp.asarray(lhs), load)

    def _accumulate_at(
        self, acc_addr: int, lhs: Any, mxu_index: int, load_staged_rhs: Any = None
    ) -> None:
        if not self._by_ref:
            self._check("matmul_acc_lhs", acc_addr, lhs, mxu_index, load_staged_rhs)
        (mxu,) = _static(mxu_index=mxu_index)
        load = self._register(load_staged_rhs, mxu)
        self.accumulate(mxu, self._row(acc_addr), jnp.asarray(lhs), load)

    def _accumulate_elsewhere(self, *args: Any, **kwargs: Any) -> None:
        if self._oracle is None:
            _refuse_view(_first(args, kwargs, "acc", "acc_addr"), "matmul_acc_lhs")
            return self._jax["matmul_acc_lhs"](*args, **kwargs)

        def meant(acc: Any, lhs: Any, load_staged_rhs: Any = None) -> None:
            self._oracle.accumulate(acc, lhs, load_staged_rhs)

        return meant(*args, **kwargs)

    def _pop_from(self, acc: Accumulator) -> Any:
        self._check_ref(acc, lambda ref: self._jax["matmul_pop"](ref))
        return self.pop(acc.mxu, acc.row, acc.shape, acc.dtype)

    def _pop_at(self, acc_addr: int, shape: tuple[int, int], dtype: Any, mxu_index: int) -> Any:
        if not self._by_ref:
            self._check("matmul_pop", acc_addr, shape, dtype, mxu_index)
        (mxu,) = _static(mxu_index=mxu_index)
        kind = jnp.dtype(dtype)
        if kind not in (jnp.float32, jnp.int32):  # as jax until 0.11.1
            raise ValueError(f"Only float32 and int32 accumulators are supported, got {kind}")
        return self.pop(mxu, self._row(acc_addr), shape, dtype)

    def _pop_elsewhere(self, *args: Any, **kwargs: Any) -> Any:
        if self._oracle is None:
            _refuse_view(_first(args, kwargs, "acc", "acc_addr"), "matmul_pop")
            return self._jax["matmul_pop"](*args, **kwargs)
        return self._oracle.pop(*args, **kwargs)

    def _row(self, address: int) -> int:
        """An address counts vector registers (`base_address` in mosaic/lowering.py of jax)."""
        return int(address) * SUBLANES // (self._kernels.chip.size // LANES)

    def _register(self, load: Any, mxu: int) -> int | None:
        if self._oracle is not None:
            return self._oracle.register(load, mxu)
        if isinstance(load, bool) or not isinstance(load, int | np.integer | None):
            raise TypeError("load_staged_rhs must be an integer or None.")
        return None if load is None else int(load)

    def _check(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Let jax check the arguments of its operation, and raise what it raises."""
        if self._kernels.inside and self._oracle is not None:
            return
        jax.eval_shape(lambda: self._jax[name](*args, **kwargs))

    def _check_ref(self, acc: Accumulator, operation: Callable[[Any], Any]) -> None:
        if self._oracle is not None:
            return
        ref = pltpu.ACC(acc.mxu)(acc.shape, acc.dtype)
        jax.eval_shape(lambda: self._run_scoped(operation, ref))


def _first(args: tuple[Any, ...], kwargs: dict[str, Any], *names: str) -> Any:
    if args:
        return args[0]
    return next((kwargs[name] for name in names if name in kwargs), None)


def _is_address(acc: Any) -> bool:
    return isinstance(acc, int | np.integer) and not isinstance(acc, bool)


def _static(**given: Any) -> list[int]:
    """The values as integers. Raises TypeError for what is only known at run time."""
    for name, value in given.items():
        if not isinstance(value, int | np.integer):
            raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    return [int(value) for value in given.values()]


def _refuse_view(acc: Any, operation: str) -> None:
    """Raise what jax raises for a part of an accumulator (jax/_src/pallas/mosaic/lowering.py)."""
    if isinstance(acc, View):
        raise NotImplementedError(f"Transforms not supported for {operation}.")
