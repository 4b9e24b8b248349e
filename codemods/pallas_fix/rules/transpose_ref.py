"""API033: `plgpu.transpose_ref`, which is a method of refs now."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Fix, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.access.given import given
from pallas_fix.rules.access.kept import kept_comments
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed("0.7.2", warns="0.11.2")


class TransposeRef(Rule):
    """`plgpu.transpose_ref` is used, which is a method of refs now.

    ## What it does
    `plgpu.transpose_ref(ref, permutation)` becomes `ref.transpose(permutation)`, and `ref.T` where
    the permutation is written out as `(1, 0)`.

    ## Why it fails
    Since jax 0.11.2 a DeprecationWarning: "jax.experimental.pallas.mosaic_gpu.transpose_ref is
    deprecated. Use ref.transpose(...) directly instead." The function did nothing else than to call
    the method (jax/_src/pallas/mosaic_gpu/core.py).

    ## Example
    ```python
    plgpu.wgmma(acc, a_smem, plgpu.transpose_ref(b_smem, (1, 0)))
    ```
    becomes
    ```python
    plgpu.wgmma(acc, a_smem, b_smem.T)
    ```

    ## When it is not fixed
    The function is handed on without being called, or its arguments are unpacked; the code must
    also run on jax before 0.7.2, whose refs have no such method.

    ## What to do by hand
    Call `ref.transpose(permutation)`.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API033"
    name = "transpose-ref"
    triggers = ("transpose_ref",)
    messages = (r"mosaic_gpu\.transpose_ref is deprecated",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use of the function."""
        for node, _, call in uses(module, {"plgpu.transpose_ref"}):
            yield self._finding(module, call or node, _fix(module, call) if call else None)

    def _finding(self, module: Facts, place: ast.expr, fix: Fix | None) -> Finding:
        return Finding(
            self.code,
            module.span(place),
            f"`plgpu.transpose_ref` is {_CHANGE}: now `ref.transpose(...)`",
            fix,
            None if fix else _NOT_CALLED,
            module.names.qualname(place),
            change=_CHANGE,
        )


_NOT_CALLED = Reason(
    "not-called-plainly",
    "it is handed on, or its arguments are unpacked, so that the ref cannot be seen",
    "call ref.transpose(permutation) where the ref is known",
)


def _fix(module: Facts, call: ast.Call) -> Fix | None:
    named = given(call, "ref", "permutation")
    if named is None or named.keys() != {"ref", "permutation"}:
        return None
    parts = {"ref": module.span(named["ref"])}
    text = "$ref.T"
    if not _swaps_two(named["permutation"]):
        parts["permutation"] = module.span(named["permutation"])
        text = "$ref.transpose($permutation)"
    comments = kept_comments(module, call, parts.values())
    return Fix((Replace(module.span(call), Code(text, parts)), *comments), certain=True)


def _swaps_two(permutation: ast.expr) -> bool:
    return isinstance(permutation, ast.Tuple | ast.List) and [
        getattr(item, "value", None) for item in permutation.elts
    ] == [1, 0]
