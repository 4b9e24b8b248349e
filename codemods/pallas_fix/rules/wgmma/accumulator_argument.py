"""GPU003: what is passed to WGMMA as an accumulator, and how it was allocated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from pallas_fix.edits import Fix
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.rules.wgmma.accesses import Accesses
from pallas_fix.rules.wgmma.collective import Collective
from pallas_fix.rules.wgmma.initial import Initial
from pallas_fix.rules.wgmma.placement import Placement
from pallas_fix.rules.wgmma.products import Products
from pallas_fix.rules.wgmma.stores import MODULE, Traffic
from pallas_fix.rules.wgmma.trouble import Trouble
from pallas_fix.versions import since


class WgmmaAccumulatorArgument(Rule):
    """The accumulator of `plgpu.wgmma` is a `plgpu.ACC` ref of its own warpgroup.

    ## What it does

    `plgpu.wgmma_accumulator_load(acc.at[...])` and `(acc[...])` become `(acc)`; a part is taken
    from the loaded value. A ref in SMEM or GMEM is read with `ref[...]` instead. The first
    argument of `plgpu.wgmma` loses an index that loads it and a reshape that changes nothing; a
    `plgpu.SMEM` allocation that reaches it becomes `plgpu.ACC(shape, dtype)`. An accumulator
    that is transposed in each of its uses is allocated the other way around.
    `plgpu.ACC.init(v)` in `pl.run_scoped` becomes `plgpu.ACC(v.shape, v.dtype)` with
    `acc[...] = v` first in the scope. A `plgpu.ACC` in the `scratch_types` of a kernel with
    `thread_name` moves to a `pl.run_scoped` in the body, and `collective_axes` goes from a
    scope that holds accumulators alone. An accumulator of another shape than its product is
    allocated with that shape; that fix is plausible only, because the operands might be at
    fault.

    ## Why it fails

    Since jax 0.9.1, and most of it before (jax/_src/pallas/mosaic_gpu/primitives.py, core.py and
    lowering.py). While tracing:
    `TypeError: Expected WGMMAAbstractAccumulatorRef got Ref<smem>{float32[64,128]}`,
    `TypeError: acc must be a WGMMAAccumulatorAbstractRef, got acc.aval=...`,
    `ValueError: Triggering __jax_array__() during abstractification is no longer supported.`,
    `ValueError: Preinitialized WGMMAAccumulatorRef only supported in pl.run_state.`,
    `ValueError: Incompatible shapes for matrix multiplication: lhs=..., rhs=..., acc=...`.
    While lowering: `ValueError: WGMMA accumulator only supports indexing transforms`,
    `ValueError: WGMMA accumulators can only be allocated non-collectively.`

    ## Example

    ```python
    # before
    def kernel(a_smem, b_smem, o_smem):
        def scope(acc):
            plgpu.wgmma(acc, a_smem, b_smem)
            return plgpu.wgmma_accumulator_load(acc.at[...])
        o_smem[...] = pl.run_scoped(scope, plgpu.SMEM((M, N), jnp.float32))

    # after
    def kernel(a_smem, b_smem, o_smem):
        def scope(acc):
            plgpu.wgmma(acc, a_smem, b_smem)
            return plgpu.wgmma_accumulator_load(acc)
        o_smem[...] = pl.run_scoped(scope, plgpu.ACC((M, N), jnp.float32))
    ```

    ## When it is not fixed

    A transposed or otherwise transformed accumulator (`accumulator-transpose`,
    `accumulator-transform`); an input, output, TMEM or `jax.empty_ref` ref as the accumulator
    (`operand-accumulator`, `tmem-accumulator`, `register-ref`); an SMEM ref that is also copied,
    written in part or multiplied (`accumulator-used-as-memory`); operands that do not fit each
    other (`operand-mismatch`); one scope for accumulators and shared refs (`split-scope`); a
    kernel whose parameters cannot be changed (`kernel-not-plain`, `shape-not-visible`). Each
    comes with its way out.

    ## What to do by hand

    Allocate the accumulator for one warpgroup, inside the kernel's body:

    ```python
    def scope(acc):
        plgpu.wgmma(acc, a_smem, b_smem)
        return acc[...]
    product = pl.run_scoped(scope, plgpu.ACC((a_smem.shape[0], b_smem.shape[1]), jnp.float32))
    ```

    ## How it is verified

    The file before fails with one of the messages above; the file after is traced, lowered and
    compiled for H100. The compiler checks shapes, memory spaces and layouts. It does not check
    that products are complete when they are read.
    """

    code = "GPU003"
    name = "wgmma-accumulator-argument"
    triggers = ("wgmma", "ACC", "WGMMAAccumulatorRef")
    messages = (
        r"Expected WGMMAAbstractAccumulatorRef got",
        r"acc must be a WGMMAAccumulatorAbstractRef, got",
        r"Triggering __jax_array__\(\) during abstractification is no longer supported",
        r"Preinitialized WGMMAAccumulatorRef only supported in pl\.run_state",
        r"Incompatible shapes for matrix multiplication: lhs=",
        r"WGMMA accumulator only supports indexing transforms",
        r"WGMMA accumulators can only be allocated non-collectively",
        r"The slice shape must be a multiple of the tile shape",
    )
    applies = since("0.9.1")

    def find(self, module: Facts) -> Iterator[Finding]:
        if MODULE not in module.text:
            return
        traffic = Traffic(module)
        parts = (Accesses, Placement, Collective, Initial, Products)
        for trouble in chain.from_iterable(part(module, traffic) for part in parts):
            if not module.is_guarded(module.span(trouble.node)):
                yield self._finding(module, trouble)

    def _finding(self, module: Facts, trouble: Trouble) -> Finding:
        function = module.names.qualname(trouble.node)
        if trouble.function is not None:
            function = module.names.scopes[trouble.function].qualname
        entered = () if function == "<module>" else (function,)
        fix = Fix(trouble.edits, trouble.certain, None, entered) if trouble.edits else None
        span = module.span(trouble.node)
        return Finding(self.code, span, trouble.message, fix, trouble.reason, function)
