"""API036: `pl.pallas_call` with the parameters of Mosaic GPU, which takes `plgpu.kernel` alone."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.backends import MOSAIC_GPU
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed("0.10.2", fails="0.11.2")


class GpuPallasCall(Rule):
    """`pl.pallas_call` is given the parameters of Mosaic GPU.

    ## What it does
    It reports each such launch. Nothing is rewritten: `pl.pallas_call` copied the blocks into
    shared memory and back, and `plgpu.kernel` hands the kernel refs in global memory. The copies,
    their barriers and the shapes of what they need must be written.

    ## Why it fails
    On jax 0.11.2 and later: an `AssertionError` without a message while the call is lowered
    (jax/_src/pallas/mosaic_gpu/pallas_call_registration.py). It still can be traced, and
    interpreted with `interpret=plgpu.InterpretGPUParams()`.

    ## Example
    ```python
    pl.pallas_call(kernel, out_shape=shape, compiler_params=plgpu.CompilerParams())(x)
    ```
    becomes, by hand,
    ```python
    def body(x_gmem, o_gmem):
        @functools.partial(pl.run_scoped, x_smem=plgpu.SMEM(...), o_smem=plgpu.SMEM(...),
                           barrier=plgpu.Barrier())
        def _(x_smem, o_smem, barrier):
            plgpu.copy_gmem_to_smem(x_gmem, x_smem, barrier)
            plgpu.barrier_wait(barrier)
            kernel(x_smem, o_smem)
            plgpu.commit_smem()
            plgpu.copy_smem_to_gmem(o_smem, o_gmem)
            plgpu.wait_smem_to_gmem(0)

    plgpu.kernel(body, out_type=shape)(x)
    ```

    ## When it is not fixed
    Always, see above.

    ## What to do by hand
    Copy as in the example; with a grid of blocks, use `plgpu.emit_pipeline` in the body.

    ## How it is verified
    There is nothing to verify. A kernel before is compiled through the lowering that jax still
    ships.
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
                yield self.reported(module, launch.call, message, _CHANGE, _BY_HAND)


_BY_HAND = Reason(
    "blocks-become-copies",
    "the refs of plgpu.kernel are in global memory, and the copies of the blocks must be written",
    "copy into plgpu.SMEM and back, or use plgpu.emit_pipeline in the body of plgpu.kernel",
)
