"""What jax's GPU interpreter leaves out of WGMMA, since jax 0.11.2.

It does a product at once, takes its operands from memory only, and does not look for races of
them. Here an operand may be in registers, and a product reads memory until it is waited for.

`wgmma`, `wgmma_accumulator_deref`, `fail_on_exception`, `get_races`, `_get_shared_memory`,
`_remove_noop_transforms`: jax/_src/pallas/mosaic_gpu/interpret/gpu_callbacks.py. Clocks and memory:
shared_memory.py there. `JaxprInterpreter`, whose `interpret` skips `wgmma_wait_p`:
jaxpr_interpret.py there. `wgmma_wait_p`, `commit_smem_p`: jax/_src/pallas/mosaic_gpu/primitives.py.
"""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from typing import Any

import jax
import numpy as np
from jax._src import callback
from jax._src.pallas.mosaic_gpu import primitives
from jax._src.pallas.mosaic_gpu.interpret import gpu_callbacks, jaxpr_interpret, shared_memory

_Interpreter: Any = jaxpr_interpret.JaxprInterpreter
_Memory: Any = shared_memory.GPUSharedMemory


def install() -> None:
    """Replace what the interpreter does."""
    reset, interpret = _Memory.reset_per_cluster_state, _Interpreter.interpret
    commit, load = _Interpreter._interpret_commit_smem_p, gpu_callbacks.wgmma_accumulator_deref

    @functools.wraps(reset)
    def resetting(self: Any) -> None:
        reset(self)
        self.products_in_flight = defaultdict(deque)

    @functools.wraps(interpret)
    def interpreting(self: Any, jaxpr: Any, *args: Any) -> Any:
        return interpret(self, _with_waits(jaxpr), *args)

    @functools.wraps(commit)
    def committing(self: Any, eqn: Any, token: Any, get_invals: Any) -> Any:
        if "n" not in eqn.params:
            return commit(self, eqn, token, get_invals)
        waited = functools.partial(_wait, n=eqn.params["n"])
        shape = gpu_callbacks.TOKEN_SHAPE_DTYPE
        return callback.io_callback(waited, shape, token=token, thread=self.thread), []

    @functools.wraps(load)
    def loading(*, thread: Any, wait_n: int | None, **kwargs: Any) -> Any:
        if wait_n is not None:
            _land(thread, wait_n)
        return load(thread=thread, wait_n=wait_n, **kwargs)

    _Memory.reset_per_cluster_state = resetting
    _Interpreter.interpret, _Interpreter._interpret_commit_smem_p = interpreting, committing
    gpu_callbacks.wgmma = _wgmma_or_fail()
    gpu_callbacks.wgmma_accumulator_deref = loading


def _with_waits(jaxpr: Any) -> Any:
    """With each wait in the clothes of an operation that the interpreter does not skip."""
    if all(eqn.primitive is not primitives.wgmma_wait_p for eqn in jaxpr.eqns):
        return jaxpr
    dressed = [
        eqn.replace(primitive=primitives.commit_smem_p)
        if eqn.primitive is primitives.wgmma_wait_p
        else eqn
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(eqns=dressed)


def _wait(*, token: Any, thread: Any, n: int) -> Any:
    _land(thread, n)
    return token


def _land(thread: Any, n: int) -> None:
    """Let the thread know that of its products all but the last `n` have ended."""
    memory: Any = gpu_callbacks._get_shared_memory()
    if memory.detect_races:
        memory.incr_clock(thread)
        with memory.lock:
            in_flight = memory.products_in_flight[thread]
            while len(in_flight) > n:
                memory.clocks[thread].update(in_flight.popleft())


def _wgmma_or_fail() -> Any:
    """`_wgmma` as a callback of the module in which `watch_failures` looks for those."""
    function = gpu_callbacks.fail_on_exception(_wgmma)
    function.__module__ = gpu_callbacks.__name__
    return function


def _wgmma(
    *,
    token: Any,
    mesh_location: Any,
    thread: Any,
    acc_allocation_key_as_array: Any,
    acc_transforms: Any,
    a_allocation_key_as_array: Any,
    a_transforms: Any,
    b_allocation_key_as_array: Any,
    b_transforms: Any,
    source_info: Any = None,
) -> Any:
    memory: Any = gpu_callbacks._get_shared_memory()
    note = shared_memory.GPULoggingInfo(mesh_location, thread, source_info)
    clock = _take_off(memory, thread)

    def place(array: Any, transforms: Any) -> tuple[Any, Any]:
        key = shared_memory.HostAllocationKey.from_array(array)
        plain = jax.tree.map(int, gpu_callbacks._remove_noop_transforms(transforms))
        return key, memory.access(key, plain)

    def content(key: Any, access: Any) -> Any:
        read, _, _ = memory.get_buffer_content(key, access, thread, logging_info=note)
        if read is None or read.shape != access.shape:
            raise IndexError(f"Out-of-bounds operand of wgmma: [{access}]")
        return read

    def operand(array: Any, transforms: Any) -> Any:
        if array.ndim > 1:  # the numbers themselves, not the key of a buffer
            return np.asarray(array)
        key, access = place(array, transforms)
        if clock is not None:
            races: Any = gpu_callbacks.get_races()
            races.check_read(
                thread, clock.async_smem_clock.copy(), key, access, source_info=source_info
            )
        return content(key, access)

    a = operand(a_allocation_key_as_array, a_transforms)
    b = operand(b_allocation_key_as_array, b_transforms)
    acc_key, acc_access = place(acc_allocation_key_as_array, acc_transforms)
    acc = content(acc_key, acc_access)
    result = acc + np.matmul(a, b, dtype=acc.dtype)
    memory.store_buffer_content(acc_key, acc_access, result, thread, logging_info=note)
    return token


def _take_off(memory: Any, thread: Any) -> Any:
    """The clock of a product that begins: after what the thread knows of, and beside it."""
    if not memory.detect_races:
        return None
    clock = memory.incr_clock(thread)
    clock.inc(memory.get_next_tma_thread_id())
    with memory.lock:
        memory.products_in_flight[thread].append(clock)
    return clock
