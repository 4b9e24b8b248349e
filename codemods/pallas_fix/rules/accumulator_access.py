"""TPU002: loads, stores and views of refs that are MXU accumulators."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.values import Event, Loaded, Ref, Trace, View
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.rules.mxu.repair import findings, reaches_mxu
from pallas_fix.versions import since


class AccumulatorAccess(Rule):
    """A ref in accumulator memory is loaded, stored to, or indexed.

    ## What it does
    Repairs what a kernel may not do with a ref in `pltpu.ACC(mxu_index)`:

    - `acc[...]` and `pltpu.load(acc)` become `pltpu.matmul_pop(acc)`, where that is the last read
      after the last accumulation; a second read takes the value popped before;
    - a zero store before the first accumulation goes: an accumulator starts at zero;
    - `acc[...] += bias` before the pop is added to the popped value;
    - a trivial `.at[...]` goes; fixed rows (`acc.at[pl.ds(0, 32)]`) of an accumulator that
      `pl.run_scoped` allocates become an accumulator each.

    ## Why it fails
    Only `matmul_acc_lhs` and `matmul_pop` reach accumulator memory, and both take the whole ref.
    Since jax 0.11.2 lowering says `ValueError: Loading from an accumulator is not supported. Use
    matmul_pop instead, which will additionally zero out the accumulator.`, `ValueError: Storing
    into an accumulator is not supported.` or `NotImplementedError: Transforms not supported for
    matmul_acc_lhs.`

    ## Example
    ```python
    pltpu.matmul_acc_lhs(acc, x_ref[...], load_staged_rhs=0)
    o_ref[...] = acc[...]
    ```
    becomes
    ```python
    pltpu.matmul_acc_lhs(acc, x_ref[...], load_staged_rhs=0)
    o_ref[...] = pltpu.matmul_pop(acc)
    ```

    ## When it is not fixed
    The accumulator is read before the last accumulation, starts with a value that is not zero, is
    zeroed while it may hold a sum, or a part of it is used.

    ## What to do by hand
    Keep what must outlive the accumulator in a VMEM ref: pop after each accumulation and add the
    value to that ref. For parts, allocate one accumulator each.

    ## How it is verified
    The kernel is traced, lowered and compiled for TPU7x. That shows that the kernel is accepted,
    not that its numbers are right.
    """

    code = "TPU002"
    name = "accumulator-access"
    triggers = ("matmul_acc_lhs", "matmul_pop")
    applies = since("0.11.2")
    meant = True
    messages = (
        r"Loading from an accumulator is not supported",
        r"Storing into an accumulator is not supported",
        r"Transforms not supported for matmul_(?:acc_lhs|pop)",
        r"'AccRef' object has no attribute 'type'",
        r'Operand 0 of operation "tpu\.enqueue_dma" must be a Value',
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each accumulator that is used as if it were memory."""

        def wanted(trace: Trace, ref: Ref) -> bool:
            if ref.kind == "param":
                known = reaches_mxu(trace, ref)
            else:
                known = ref.space == "pltpu.ACC" and ref.kind in ("scoped", "empty")
                shape = module.constants.shape(ref.allocation.shape) if ref.allocation else None
                known = known and (shape is None or len(shape) == 2)
            return known and any(map(_is_access, trace.uses(ref)))

        yield from findings(module, self.code, wanted, _message, self.options.targets)


def _is_access(event: Event) -> bool:
    if event.kind in ("acc", "pop"):
        return isinstance(event.how, View | Loaded)
    return event.kind in ("load", "store", "update")


def _message(ref: Ref) -> str:
    name = f"`{ref.name}`" if ref.name else "a ref"
    return f"{name} is an MXU accumulator, but is read, written or indexed like memory"
