"""MXU001: accumulators of the explicit MXU API that are named by address."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.edits import Fix
from pallas_fix.facts import Facts
from pallas_fix.rules.addresses.repair import repairs
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.rules.mxu.repair import no_accumulators
from pallas_fix.versions import changed, since

_CHANGE = changed("0.11.2", fails="0.11.2")


class MxuAddress(Rule):
    """An accumulator of the explicit MXU API is named by its MXU and its address.

    ## What it does
    Gives the kernel one accumulator ref for each MXU and address that it uses, with the shape and
    the dtype of its `pltpu.matmul_pop`, allocated by `pl.run_scoped` in the smallest function in
    which it begins and ends empty. In the place of each address stands the ref:

    - addresses are followed through constants, arithmetic, helper functions and Python loops;
    - a parameter or variable that holds nothing but addresses, as in `body(128, 0)` and
      `body(0, 128)`, carries refs instead;
    - in a Python loop over `range(n)` a list of accumulators is indexed with the number that the
      code has there; where there is none, a dict by address or MXU;
    - a helper function that is written outside of the kernel gets a parameter for the ref;
    - `mxu_index`, `shape` and `dtype` go: an accumulator knows them.

    ## Why it fails
    Since jax 0.11.2 `matmul_acc_lhs(acc, lhs, load_staged_rhs)` and `matmul_pop(acc)` take a ref
    of `pltpu.ACC(mxu_index)`; until 0.11.1 they were `matmul_acc_lhs(acc_addr, lhs, mxu_index,
    load_staged_rhs)` and `matmul_pop(acc_addr, shape, dtype, mxu_index)`. While the kernel is
    traced:
    `TypeError: matmul_acc_lhs() got an unexpected keyword argument 'acc_addr'`,
    `TypeError: matmul_acc_lhs() got an unexpected keyword argument 'mxu_index'`,
    `TypeError: matmul_acc_lhs() takes from 2 to 3 positional arguments but 4 were given`,
    `TypeError: matmul_pop() takes 1 positional argument but 4 were given`.

    ## Example
    ```python
    def kernel(x_ref, y_ref, o_ref):
        pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
        pltpu.matmul_acc_lhs(0, x_ref[...], mxu_index=0, load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(0, (64, 256), jnp.float32, mxu_index=0)
    ```
    becomes
    ```python
    def kernel(x_ref, y_ref, o_ref):
        def scope(acc):
            pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
            pltpu.matmul_acc_lhs(acc, x_ref[...], load_staged_rhs=0)
            o_ref[...] = pltpu.matmul_pop(acc)

        pl.run_scoped(scope, pltpu.ACC(0)((64, 256), jnp.float32))
    ```

    ## When it is not fixed
    An address or an MXU index is only known at run time or by code in other files; accumulators
    overlap, or are accumulated and popped in different parts; one address is popped with several
    shapes or dtypes, never popped, or never accumulated; one does not fit the 128 entries of an
    MXU, or has not 256 columns; a grid step may start with what another one left behind; the ref
    has to go through code that pallas-fix does not follow.

    ## What to do by hand
    Allocate `pltpu.ACC(mxu_index)((rows, 256), jnp.float32)` with `pl.run_scoped` around all code
    that accumulates and pops, and pass the ref in the place of the address. An address counts
    registers: accumulators of `rows` rows are `rows // 8 * 2` apart. What has to last from one
    grid step to the next goes to a `pltpu.VMEM` scratch ref: pop in each step, and add.

    ## How it is verified
    An emulator of the MXU runs the kernel as it was meant by address, and as it is with refs, on
    the same inputs, and the numbers must be equal. The result is traced, lowered and compiled for
    TPU7x.
    """

    code = "MXU001"
    name = "mxu-address"
    triggers = ("matmul_acc_lhs", "matmul_pop")
    applies = since("0.11.2")
    meant = True
    messages = (
        r"matmul_(?:acc_lhs|pop)\(\) got an unexpected keyword argument",
        r"matmul_(?:acc_lhs|pop)\(\) takes .*positional arguments? but",
        r"matmul_acc_lhs\(\) got multiple values for argument 'load_staged_rhs'",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each group of calls that work on the same accumulators."""
        unavailable = no_accumulators(self.options.targets)
        for repair in repairs(module):
            span, made = module.span(repair.node), unavailable or repair.made
            fix, reason = (made, None) if isinstance(made, Fix) else (None, made)
            message = (
                f"an MXU accumulator by its address is {_CHANGE}: it is a ref of "
                "`pltpu.ACC(mxu_index)(shape, dtype)`"
            )
            function = module.names.qualname(repair.node)
            yield Finding(self.code, span, message, fix, reason, function, (), _CHANGE)
