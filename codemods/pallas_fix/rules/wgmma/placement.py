"""Accumulators that are allocated in a memory space that `wgmma` cannot use."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation
from pallas_fix.facts.values import Event, Ref
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.wgmma.stores import Traffic
from pallas_fix.rules.wgmma.trouble import Trouble

_DTYPES = frozenset({"float16", "float32", "int32"})
_GENTLE = frozenset({"wgmma", "wgmma_load", "wgmma_store", "load", "meta"})
_WHOLE = frozenset({"store", "update"})

_OPERAND = Reason(
    "operand-accumulator",
    "an input or output of the kernel lies in GMEM, and wgmma accumulates in registers alone",
    "allocate plgpu.ACC(shape, dtype) with pl.run_scoped, and copy the loaded value to the "
    "output when all products are in it",
)
_TMEM = Reason(
    "tmem-accumulator",
    "the accumulator lies in tensor memory, which only plgpu.tcgen05_mma (Blackwell) writes",
    "for Hopper allocate plgpu.ACC(shape, dtype); for Blackwell call plgpu.tcgen05_mma",
)
_REGISTERS = Reason(
    "register-ref",
    "jax.empty_ref makes a plain ref, whatever its memory space",
    "allocate the accumulator with pl.run_scoped(..., plgpu.ACC(shape, dtype))",
)
_SCRATCH = Reason(
    "scratch-accumulator",
    "only plgpu.kernel takes accumulators in its scratch_types",
    "allocate plgpu.ACC(shape, dtype) with pl.run_scoped in the body of the kernel",
)
_USED = Reason(
    "accumulator-used-as-memory",
    "the ref is also used as only SMEM can be (copied, written in part, multiplied, or passed on)",
    "allocate a plgpu.ACC beside it for wgmma, and store its loaded value into the SMEM ref",
)
_DTYPE = Reason(
    "accumulator-dtype",
    "wgmma accumulates in float32, float16 or int32 only",
    "allocate plgpu.ACC(shape, jnp.float32), and cast the loaded value",
)


class Placement:
    """Finds the first arguments of `wgmma` that are refs of another memory space."""

    def __init__(self, module: Facts, traffic: Traffic) -> None:
        self._module = module
        self._accumulators = traffic.accumulators

    def __iter__(self) -> Iterator[Trouble]:
        done: set[ast.AST] = set()
        for node, events in self._accumulators.nodes("wgmma"):
            for event in events:
                ref = event.ref
                if ref is None or self._accumulators.is_accumulator(ref):
                    continue
                place = ref.allocation.node if ref.allocation is not None else node
                reason = _elsewhere(ref)
                if place in done or (reason is None and ref.space != "plgpu.SMEM"):
                    continue
                done.add(place)
                message = "wgmma accumulates into a ref that is no plgpu.ACC"
                if reason is not None or ref.allocation is None:
                    yield Trouble(node, message, reason=reason or _USED)
                else:
                    yield self._swapped(node, message, ref.allocation)

    def _swapped(self, node: ast.AST, message: str, allocation: Allocation) -> Trouble:
        """`plgpu.SMEM(shape, dtype)` becomes `plgpu.ACC(shape, dtype)` where nothing objects."""
        refs = [r for r in self._accumulators.by_ref if r.allocation is not None]
        sharing = [r for r in refs if r.allocation and r.allocation.node is allocation.node]
        for ref in sharing:
            events = self._accumulators.by_ref[ref]
            if not all(map(_allowed, events)) or not any(e.kind == "wgmma" for e in events):
                return Trouble(node, message, reason=_USED)
        dtype = self._module.constants.dtype(allocation.dtype)
        if dtype is not None and dtype not in _DTYPES:
            return Trouble(node, message, reason=_DTYPE)
        if allocation.shape is None or allocation.dtype is None:
            return Trouble(node, message, reason=_USED)
        writer = Writer(self._module, allocation.node)
        text = f"{writer.name('plgpu.ACC')}({writer.hole(allocation.shape)}, "
        code = writer.code(f"{text}{writer.hole(allocation.dtype)})")
        span = self._module.span(allocation.node)
        edits: tuple[Edit, ...] = (Replace(span, code), *writer.imports)
        return Trouble(node, message, edits)


def _elsewhere(ref: Ref) -> Reason | None:
    """Why a ref of this kind or space does not become an accumulator."""
    if ref.kind == "operand":
        plain = ref.launch is not None and ref.launch.kind == "gpu_kernel"
        return _OPERAND if plain else None
    if ref.kind == "empty":
        return _REGISTERS
    if ref.kind == "scratch" and (ref.launch is None or ref.launch.kind != "gpu_kernel"):
        return _SCRATCH
    return {"plgpu.TMEM": _TMEM, "plgpu.GMEM": _OPERAND}.get(ref.space or "")


def _allowed(event: Event) -> bool:
    if event.kind in _WHOLE:
        return event.whole and isinstance(event.how, Ref)
    return event.kind in _GENTLE or (event.kind == "view" and event.whole)
