"""API013: functions of Triton kernels that have left `pl` for their own module."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.backends import TRITON
from pallas_fix.rules.access.pinned import HIDDEN_LAUNCH, pinned
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_ATOMIC = changed("0.7.1", warns="0.7.1", fails="0.9.0")
_CHANGES = {f"pl.atomic_{op}": _ATOMIC for op in "add and cas max min or xchg xor".split()} | {
    "pl.max_contiguous": changed("0.8.1", warns="0.8.1", fails="0.9.0")
}


class TritonOnly(Rule):
    """An atomic operation, or `pl.max_contiguous`, is used as a function of `pl`.

    ## What it does
    `pl.atomic_add` and the other atomics, and `pl.max_contiguous`, become those of
    `jax.experimental.pallas.triton`, which take the same arguments. For a jax on which
    `pl.pallas_call` does not choose Triton by itself (0.9.0 to 0.11.1), the launch gets
    `compiler_params=plt.CompilerParams()`.

    ## Why it fails
    `AttributeError: module 'jax.experimental.pallas' has no attribute 'atomic_add'` since jax
    0.9.0, a DeprecationWarning since 0.7.1 (`max_contiguous`: 0.8.1).

    ## Example
    ```python
    pl.atomic_add(o_ref, (i,), x)
    ```
    becomes
    ```python
    plt.atomic_add(o_ref, (i,), x)
    ```

    ## When it is not fixed
    The kernel is for another backend, which never had these functions; a launch that must ask for
    Triton takes its arguments from elsewhere.

    ## What to do by hand
    Give `compiler_params=plt.CompilerParams()` to the launch, and use the functions of `plt`.

    ## How it is verified
    The kernel is traced, lowered and compiled after the fix; with `--before-python`, an interpreter
    whose jax still has the function, before it too.
    """

    code = "API013"
    name = "triton-only"
    triggers = ("pallas",)
    messages = (
        r"module 'jax\.experimental\.pallas' has no attribute '(?:atomic_\w+|max_contiguous)'",
        r"pl\.(?:atomic_\w+|max_contiguous) is deprecated",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use of one of the functions."""
        for node, name, _ in uses(module, _CHANGES):
            now = f"triton.{name.partition('.')[2]}"
            made: tuple[Edit, ...] | Reason = _NOT_TRITON
            if module.backends.of(node).name in (TRITON, None):
                pin = pinned(module, node, self.options.versions)
                spelled = module.names.spell(now, node)
                moved = Replace(module.span(node), Code(spelled.text))
                made = HIDDEN_LAUNCH if pin is None else (moved, *spelled.imports, *pin)
            yield self.reported(
                module,
                node,
                f"`{name}` is {_CHANGES[name]}: now `{now}`",
                _CHANGES[name],
                made,
            )


_NOT_TRITON = Reason(
    "not-triton",
    "the kernel is not seen to be one for Triton, and no other backend has the function",
    "give compiler_params=plt.CompilerParams() to the launch, and use the function of plt",
)
