"""TPU001: accumulators of the explicit MXU API that are not in accumulator memory."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.values import Ref, Trace
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.rules.mxu.repair import findings, reaches_mxu
from pallas_fix.versions import since

_PLACES = {"pltpu.VMEM": "VMEM", "pltpu.SMEM": "SMEM", "pltpu.CMEM": "CMEM", "pltpu.HBM": "HBM"}


class VmemAccumulator(Rule):
    """An accumulator of the explicit MXU API is allocated in VMEM, or is no ref of its own.

    ## What it does
    Finds each ref that reaches the first argument of `pltpu.matmul_acc_lhs` or the argument of
    `pltpu.matmul_pop` and lives in VMEM or SMEM, or is an input or output of the kernel, and
    gives the kernel an accumulator instead:

    - in `pl.run_scoped`, `pl.with_scoped` and `jax.empty_ref` the memory space is swapped in place;
    - an entry of `scratch_shapes` or `scratch_types` leaves the list, and the kernel gets its
      accumulator from `pl.with_scoped` or from `pl.run_scoped` in its body;
    - reads become `pltpu.matmul_pop`, zero stores go (an accumulator starts at zero);
    - a sum that has to outlive the accumulator (over grid steps, with a bias, read in the middle,
      in an output) stays where it is, and each accumulation is popped and added to it.

    The MXU index is that of the `pltpu.matmul_push_rhs` whose staging register is consumed.

    ## Why it fails
    Since jax 0.11.2 an accumulator is a ref in `pltpu.ACC(mxu_index)`. Others are refused while
    the kernel is traced: `ValueError: Expected an accumulator ref, got
    Ref<vmem>{float32[192,256]}`, and for a value that was read from a ref `ValueError: Can only
    call matmul_acc_lhs on a Ref`. There is no `MemorySpace.ACCUMULATOR`.

    ## Example
    ```python
    def matmul(x, y):
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((192, 256), jnp.float32),
            scratch_shapes=[pltpu.VMEM((192, 256), jnp.float32)],
        )(x, y)
    ```
    becomes
    ```python
    def matmul(x, y):
        return pl.pallas_call(
            pl.with_scoped(pltpu.ACC(0)((192, 256), jnp.float32))(kernel),
            out_shape=jax.ShapeDtypeStruct((192, 256), jnp.float32),
            name="kernel",
        )(x, y)
    ```

    ## When it is not fixed
    A part of a ref is used as accumulator, its rank is not 2, its last dimension is not 256, its
    rows are not a multiple of 8, more than 128 entries of 8 rows would live on one MXU, the MXU
    index is not the same on all paths, or the ref goes where pallas-fix cannot follow. TPU v4 to
    v6e have no accumulators: there `pltpu.matmul_lhs_fifo` and `pltpu.matmul_pop_fifo` do the work.

    ## What to do by hand
    Allocate `pltpu.ACC(mxu_index)((rows, 256), jnp.float32)` with `pl.run_scoped` in the kernel,
    accumulate into it, and pop it once. To state the expectation in code:
    ```python
    assert isinstance(jax.typeof(acc).memory_space, pltpu.ACC), jax.typeof(acc)
    ```

    ## How it is verified
    The kernel is traced, lowered and compiled for TPU7x before and after. A compiler accepts a
    wrong MXU index and a lost accumulation, so this shows that the kernel is accepted, not that
    its numbers are right.
    """

    code = "TPU001"
    name = "vmem-accumulator"
    triggers = ("matmul_acc_lhs", "matmul_pop")
    applies = since("0.11.2")
    meant = True
    messages = (
        r"Expected an accumulator ref, got",
        r"Can only call `?matmul_\w+`? on a `?Ref`?",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each accumulator, with those that share code in one."""
        yield from findings(module, self.code, _wanted, _message, self.options.targets)


def _wanted(trace: Trace, ref: Ref) -> bool:
    if not reaches_mxu(trace, ref):
        return False
    return ref.kind == "operand" or ref.space in _PLACES


def _message(ref: Ref) -> str:
    name = f"`{ref.name}`" if ref.name else "a ref"
    if ref.kind == "operand":
        return f"{name} is an operand of the kernel, but is used as an MXU accumulator"
    place = _PLACES.get(ref.space or "", "another memory space")
    return f"{name} is used as an MXU accumulator, but is allocated in {place}"
