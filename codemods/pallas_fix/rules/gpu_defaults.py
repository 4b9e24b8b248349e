"""API034: GPU kernels that leave to jax what it has decided in different ways."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from packaging.version import Version

from pallas_fix.edits import Code, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.backends import TRITON
from pallas_fix.rules.access.pinned import pinned
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.versions import changed

_BACKEND = changed("0.6.2", fails="0.9.0")
_SEMANTICS = changed("0.6.1", fails="0.11.0")


class GpuDefaults(Rule):
    """A GPU kernel leaves its backend or its lowering to jax, which has changed its mind.

    ## What it does
    Only where the code must run on a jax that decides otherwise (`--jax`):
    - a launch of a Triton kernel without parameters gets `compiler_params=plt.CompilerParams()` if
      one of the versions is from 0.9.0 to 0.11.1, which choose Mosaic GPU;
    - `plgpu.CompilerParams(...)` gets `lowering_semantics=plgpu.LoweringSemantics.Lane` if the
      versions are of both sides of jax 0.11.0, which made `Warpgroup` the default.

    ## Why it fails
    `pl.pallas_call` on a GPU chose Triton until jax 0.8.3, Mosaic GPU from 0.9.0, and Triton
    again from 0.11.2 (jax/_src/pallas/pallas_call.py). Mosaic GPU has no rules for what Triton
    kernels do: `NotImplementedError: Unimplemented primitive in Pallas Mosaic GPU lowering`. The
    other lowering takes other layouts and reports other errors
    (jax/_src/pallas/mosaic_gpu/core.py).

    ## Example
    ```python
    pl.pallas_call(kernel, out_shape=shape)(x)
    ```
    becomes, for a kernel that calls `plt.load`,
    ```python
    pl.pallas_call(kernel, out_shape=shape, compiler_params=plt.CompilerParams())(x)
    ```

    ## When it is not fixed
    Nothing says that the kernel is one for Triton; the launch takes its arguments from elsewhere.

    ## What to do by hand
    Give `compiler_params=` of the backend to every launch.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after. The fix of the lowering semantics
    is plausible only: kernels that were written for one may not lower with the other.
    """

    code = "API034"
    name = "gpu-default-moved"
    triggers = ("triton", "mosaic_gpu")
    messages = (r"Unimplemented primitive in Pallas Mosaic GPU lowering",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each launch, and for each set of parameters."""
        yield from self._backends(module)
        moved = Version("0.11.0")
        if self.options.closed and self.options.versions[0] < moved <= self.options.versions[-1]:
            yield from self._semantics(module)

    def _backends(self, module: Facts) -> Iterator[Finding]:
        for launch in module.launches:
            kernel = launch.kernel
            function = (
                kernel
                if isinstance(kernel, ast.FunctionDef)
                else module.names.definition(kernel)
                if kernel is not None
                else None
            )
            if launch.kind != "pallas_call" or not isinstance(function, ast.FunctionDef):
                continue
            if not _calls_triton(module, function) or module.is_guarded(module.span(launch.call)):
                continue
            edits = pinned(module, function.body[0], self.options.versions)
            mine = [edit for edit in edits or () if isinstance(edit, SetKeyword)]
            if not mine or mine[0].span != module.span(launch.call):
                continue
            yield self.reported(
                module,
                launch.call,
                "a Triton kernel without parameters goes to Mosaic GPU on jax 0.9.0 to 0.11.1",
                _BACKEND,
                edits,
            )

    def _semantics(self, module: Facts) -> Iterator[Finding]:
        for call in module.names.calls:
            if module.names.public(call.func) != "plgpu.CompilerParams":
                continue
            words = {keyword.arg for keyword in call.keywords}
            if words & {"lowering_semantics", None} or module.is_guarded(module.span(call)):
                continue
            spelled = module.names.spell("plgpu.LoweringSemantics.Lane", call)
            put = SetKeyword(module.span(call), "lowering_semantics", Code(spelled.text))
            yield self.reported(
                module,
                call,
                "`lowering_semantics=` is `Lane` by default before jax 0.11.0, then `Warpgroup`",
                _SEMANTICS,
                (put, *spelled.imports),
                certain=False,
            )


def _calls_triton(module: Facts, function: ast.FunctionDef) -> bool:
    """True for a kernel that calls functions of the Triton module, and that is for no other."""
    named = any(
        (module.names.public(node) or "").startswith("triton.")
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute | ast.Name)
    )
    return named and module.backends.of(function.body[0]).name == TRITON
