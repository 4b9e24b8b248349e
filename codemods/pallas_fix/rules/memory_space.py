"""TPU004: memory spaces that TPU kernels do not have, or not in that place."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Rule
from pallas_fix.rules.construction.trouble import imports
from pallas_fix.rules.spaces.blocks import windowed_any
from pallas_fix.rules.spaces.foreign import foreign_mesh, gpu_space, mesh_space
from pallas_fix.versions import since


class MemorySpace(Rule):
    """A TPU kernel asks for a memory space that it cannot have there.

    ## What it does
    - `plgpu.SMEM(...)` among the scratch of a TPU kernel becomes `pltpu.VMEM(...)`, where the file
      imports the TPU module and the kernel does nothing that only GPUs do;
    - a `pl.BlockSpec` with a moving window in `pl.ANY` or `pltpu.HBM` loses its memory space where
      the kernel reads the window as it is, and its window where the kernel slices the whole array;
    - scratch in `pltpu.HBM @ mesh` becomes scratch in `pltpu.VMEM @ mesh`, and `plgpu.Mesh` with a
      single thread, over which a TPU kernel is launched, `pltpu.TensorCoreMesh`.

    ## Why it fails
    On jax 0.11.2 and later:
    `ValueError: Invalid memory space: <MemorySpace.SMEM: 'smem'>`,
    `ValueError: The Pallas TPU lowering currently supports in memory space ANY only blocks having
    the same block shape as the array shape and a trivial index_map (returning all 0s).`,
    `ValueError: Memory space hbm is not supported by mesh TensorCoreMesh(...)`,
    ``ValueError: mpmd_map requires the mesh to define its `core_type` and
    `dimension_semantics` ``.

    ## Example
    ```python
    pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pl.ANY)
    ```
    becomes, for a kernel that reads `x_ref[...]`,
    ```python
    pl.BlockSpec((8, 128), lambda i: (i, 0))
    ```

    ## When it is not fixed
    The scratch is in a GPU space other than shared memory, or has transforms; the kernel both
    reads the window and slices the array; the operand is handed on; the mesh has several threads.

    ## What to do by hand
    `pltpu.VMEM` holds what a kernel computes on, `pltpu.SMEM` scalars, `pl.ANY` and `pltpu.HBM`
    whole arrays that the kernel copies from itself (`pltpu.sync_copy`). A mesh of TPU cores is
    `pltpu.TensorCoreMesh`.

    ## How it is verified
    The kernel is traced, lowered and compiled for the target before and after. That shows that
    the kernel is accepted, not that its numbers are right.
    """

    code = "TPU004"
    name = "memory-space"
    triggers = ("mosaic_gpu", ".ANY", ".HBM", ".VMEM_SHARED", "import ANY", "import HBM")
    applies = since("0.11.2")
    messages = (
        r"Invalid memory space: <MemorySpace\.",
        r"The Pallas TPU lowering currently supports in memory space ANY",
        r"Memory space (?!ACC)\S+ is not supported by mesh",
        r"mpmd_map requires the mesh to define its",
        r"Unsupported (?:core|kernel) type: gpu",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each space that is out of place."""
        if not imports(module, "pltpu"):
            return
        for troubles in (gpu_space, windowed_any, mesh_space, foreign_mesh):
            for trouble in troubles(module):
                if not module.is_guarded(module.span(trouble.node)):
                    yield trouble.finding(module, self.code)
