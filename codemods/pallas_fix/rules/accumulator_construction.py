"""TPU003: accumulators of the explicit MXU API that are made in a way that cannot work."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.values import Ref
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.rules.construction.dtype import wrong_dtype
from pallas_fix.rules.construction.form import misspelled
from pallas_fix.rules.construction.overflow import overflow
from pallas_fix.rules.construction.places import wrong_place
from pallas_fix.rules.construction.refs import wrong_maker
from pallas_fix.rules.construction.shape import wrong_shape
from pallas_fix.rules.construction.staging import wrong_register
from pallas_fix.rules.construction.trouble import Trouble, accumulators, imports
from pallas_fix.rules.mxu.repair import findings, in_scratch_list, no_accumulators
from pallas_fix.versions import since


class AccumulatorConstruction(Rule):
    """An accumulator of the explicit MXU API is made in a way that cannot work.

    ## What it does
    Accumulators are refs of `pltpu.ACC(mxu_index)(shape, dtype)`, 2-d, with 256 columns, a
    multiple of 8 rows and float32 or int32 elements. Repaired are:

    - `pltpu.ACC(shape, dtype)` without index, and names that jax does not have, such as
      `pltpu.MemorySpace.ACCUMULATOR`: the index is that of the `pltpu.matmul_push_rhs` whose
      staging register the accumulator's matmul loads;
    - an index that no MXU has, other dtypes (the popped value is cast back), dimensions of one,
      `(n, rows, 256)` whose parts are taken with Python integers (a list of accumulators), and
      other shapes where the right one follows from where the popped value is stored;
    - accumulators in `scratch_shapes` and `scratch_types`, in a `BlockSpec`, and `@ mesh`;
    - `jax.new_ref` of zeros, `pl.empty_ref_like(pltpu.ACC(...)(...))` and
      `jax.empty_ref(pltpu.ACC(...)(...))`: `jax.empty_ref` with `memory_space=` makes the same ref;
    - `load_staged_rhs=True` and other values that are no register;
    - accumulators that fill an MXU, where a scope of their own frees them, or nothing uses them.

    ## Why it fails
    Since jax 0.11.2, where `pltpu.ACC` appeared. While the kernel is traced:
    `TypeError: AccMemorySpace.__init__() takes 2 positional arguments but 3 were given`,
    `AttributeError: type object 'MemorySpace' has no attribute 'ACCUMULATOR'`,
    `ValueError: mxu_id must be in [0, 2), got mxu_id=2`,
    `ValueError: Acc ref dtype must be float32 or int32, got ...`,
    `ValueError: Acc ref must be at least 2D, got shape ...`,
    `ValueError: The minor dimension size of an accumulator ref must be 256 but got 128`,
    `ValueError: The product of the major dimensions must be a multiple of 8, but got 12`,
    `ValueError: The shape of the accumulator ... is not 2-dimensional.`,
    `ValueError: The shape of the accumulator ... does not match the shape of the lhs ...`,
    `ValueError: Memory space ACC(mxu_id=0) is not supported by mesh ...`,
    `TypeError: load_staged_rhs must be an integer or None.`
    While it is lowered:
    `RuntimeError: std::bad_cast` (a float for `load_staged_rhs`),
    `NotImplementedError: Invalid memory space: AccMemorySpace(mxu_id=0)`,
    `NotImplementedError: Unimplemented primitive in Pallas TPU lowering for tc: new_ref`,
    `ValueError: Accumulator space overflow while attempting to allocate ref of shape ...`,
    `ValueError: Accumulators are not available on TPU v6e`.

    ## Example
    ```python
    pl.run_scoped(scope, pltpu.ACC((M, N), jnp.float32))
    ```
    becomes
    ```python
    pl.run_scoped(scope, pltpu.ACC(0)((M, N), jnp.float32))
    ```

    ## When it is not fixed
    The MXU index is not certain, the shape that is meant does not follow from the file, the left
    operand and the place of the result disagree about the rows, an accumulator is to start with
    another value than zero, one is indexed at run time, what is alive together does not fit, or
    the targets named by the user (TPU v4 to v6e) have no accumulators.

    ## What to do by hand
    Allocate `pltpu.ACC(mxu_index)((rows, 256), jnp.float32)` with `pl.run_scoped` in the kernel,
    one for each MXU and each matrix; `rows` is that of the left operand. On TPU v4 to v6e use
    `pltpu.matmul_lhs_fifo` and `pltpu.matmul_pop_fifo`. To state the expectation in code:
    ```python
    assert acc.shape == (lhs.shape[0], 256) and acc.dtype == jnp.float32, (acc.shape, acc.dtype)
    ```

    ## How it is verified
    The kernel is traced, lowered and compiled for TPU7x before and after. A compiler accepts a
    wrong MXU index, so this shows that the kernel is accepted, not that its numbers are right.
    """

    code = "TPU003"
    name = "accumulator-construction"
    triggers = (
        ".ACC",
        "ACC(",
        ".AccM",
        ".Accum",
        "MXU_ACC",
        "TPU_ACC",
        "import ACC",
        "load_staged_rhs",
    )
    applies = since("0.11.2")
    meant = True
    messages = (
        r"AccMemorySpace\.__init__\(\)",
        r"has no attribute '(?:\w*ACC(?:UM\w*)?\w*|\w*Accum\w*)'",
        r"Acc ref dtype must be float32 or int32",
        r"Acc ref must be at least 2D",
        r"mxu_id must be in \[0, \d+\)",
        r"The minor dimension size of an accumulator ref must be",
        r"The product of the major dimensions must be a multiple of",
        r"The shape of the accumulator .* is not 2-dimensional",
        r"The shape of the accumulator .* does not match the shape of the lhs",
        r"Memory space ACC\(mxu_id=\d+\) is not supported by mesh",
        r"Invalid memory space: AccMemorySpace",
        r"Unimplemented primitive in Pallas TPU lowering for tc: (?:new_ref|empty)\b(?!_ref)",
        r"load_staged_rhs must be an integer or None",
        r"std::bad_cast",
        r"Accumulator space overflow",
        r"Accumulators are not available on TPU",
        r"KeyError: AccMemorySpace",
        r"No state discharge rule implemented for primitive: matmul_",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each thing that is wrong with an accumulator."""
        found = self._found(module) if imports(module, "pltpu", "pl") else ()
        for finding in found:
            if not module.is_guarded(finding.span):
                yield finding

    def _found(self, module: Facts) -> Iterator[Finding]:
        unavailable = no_accumulators(self.options.targets)
        if unavailable is not None:
            for made in accumulators(module):
                message = "the target has no MXU accumulators"
                trouble = Trouble(made.allocation.node, message, unavailable)
                yield trouble.finding(module, self.code)
            return
        yield from findings(module, self.code, in_scratch_list, _in_list)
        for trouble in _troubles(module):
            yield trouble.finding(module, self.code)


def _troubles(module: Facts) -> Iterator[Trouble]:
    made = accumulators(module)
    yield from misspelled(module, made)
    yield from wrong_dtype(module, made)
    yield from wrong_shape(module, made)
    yield from wrong_maker(module)
    yield from wrong_place(module)
    yield from wrong_register(module)
    yield from overflow(module)


def _in_list(ref: Ref) -> str:
    name = f"`{ref.name}`" if ref.name else "a ref"
    return f"{name} is an MXU accumulator, and a scratch list cannot hold one"
