"""API036: `pl.pallas_call` with the parameters of Mosaic GPU, which takes `plgpu.kernel` alone."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.backends import MOSAIC_GPU
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.pipelined.launch import as_kernel
from pallas_fix.versions import changed

_CHANGE = changed("0.10.2", fails="0.11.2")


class GpuPallasCall(Rule):
    """`pl.pallas_call` is given the parameters of Mosaic GPU.

    ## What it does
    `pl.pallas_call` becomes `plgpu.kernel`, whose kernel gets refs in global memory, and the code
    of the kernel becomes the body of a `plgpu.emit_pipeline`, which copies the blocks. That is
    what the launch was lowered to until jax 0.11.1: the parallel axes of the grid stay in the grid
    and get names, for which the index maps ask; the sequential ones become the grid of the
    pipeline. No pipeline is made where all blocks are in global memory.

    ## Why it fails
    On jax 0.11.2 and later: an `AssertionError` without a message while the call is lowered
    (jax/_src/pallas/mosaic_gpu/pallas_call_registration.py). It still can be traced, and
    interpreted with `interpret=plgpu.InterpretGPUParams()`.

    ## Example
    ```python
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] + 1

    pl.pallas_call(kernel, out_shape=shape, compiler_params=plgpu.CompilerParams())(x)
    ```
    becomes
    ```python
    def kernel(x_gmem, o_gmem):
        def on_blocks(_, x_ref, o_ref):
            o_ref[...] = x_ref[...] + 1

        plgpu.emit_pipeline(
            on_blocks,
            grid=(),
            in_specs=[plgpu.BlockSpec()],
            out_specs=[plgpu.BlockSpec()],
        )(x_gmem, o_gmem)

    plgpu.kernel(kernel, out_type=shape, compiler_params=plgpu.CompilerParams())(x)
    ```

    ## When it is not fixed
    The kernel is not a function of this file that takes refs alone and has this one launch; its
    operands cannot be counted; the grid, a block spec or an index map is not written out, or uses
    names that stand for something else in the kernel; a kernel with sequential axes asks for
    `pl.program_id`; the launch has other arguments (`input_output_aliases=`, `grid_spec=`).

    ## What to do by hand
    As in the example; or copy with `plgpu.copy_gmem_to_smem` and `plgpu.copy_smem_to_gmem`.

    ## How it is verified
    The kernel after is traced, lowered and compiled, and run where that can be done. A kernel
    before can only be interpreted. The fix is plausible, not certain.
    """

    code = "API036"
    name = "gpu-pallas-call"
    triggers = ("mosaic_gpu",)
    messages = (r"pallas_call_registration\.py.*\n(?:.*\n)*AssertionError\s*$",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each launch."""
        for launch in module.launches:
            if launch.kind != "pallas_call" or module.is_guarded(module.span(launch.call)):
                continue
            words = {keyword.arg for keyword in launch.call.keywords}
            asks = "compiler_params" in words
            if asks and module.backends.of_launch(launch) == MOSAIC_GPU:
                message = (
                    f"`pl.pallas_call` with `plgpu.CompilerParams` is {_CHANGE}: now `plgpu.kernel`"
                )
                made = as_kernel(module, launch) or _BY_HAND
                yield self.reported(module, launch.call, message, _CHANGE, made, certain=False)


_BY_HAND = Reason(
    "blocks-become-copies",
    "the refs of plgpu.kernel are in global memory; which blocks are to be copied, and which "
    "operands there are, does not all stand in the launch and its kernel",
    "let plgpu.kernel run plgpu.emit_pipeline over the blocks, with the kernel as its body",
)
