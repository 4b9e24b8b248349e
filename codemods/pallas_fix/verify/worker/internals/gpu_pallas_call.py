"""`pl.pallas_call` for Mosaic GPU, which jax 0.11.2 has dropped, and ships in its tests' shim.

`pallas_call`: jax/_src/pallas/mosaic_gpu/pallas_call.py, since 0.11.1. `CompilerParams`:
jax/_src/pallas/mosaic_gpu/core.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_TAKEN = frozenset(("grid", "in_specs", "out_specs", "scratch_shapes", "compiler_params"))


def through_shim(launch: Callable[..., Any], kernel_fn: Callable[..., Any]) -> Callable[..., Any]:
    """`launch`, with the calls for Mosaic GPU going to the shim, which launches by `kernel_fn`.

    `launch` itself where jax has no shim.
    """
    try:
        from jax._src.pallas.mosaic_gpu import core, pallas_call
    except ImportError:
        return launch

    def stand_in(kernel: Callable[..., Any], out_shape: Any, **options: Any) -> Any:
        if not isinstance(options.get("compiler_params"), core.CompilerParams):
            return launch(kernel, out_shape, **options)
        spec = options.pop("grid_spec", None)
        if spec is not None:
            options |= {
                "grid": spec.grid,
                "in_specs": spec.in_specs,
                "out_specs": spec.out_specs,
                "scratch_shapes": spec.scratch_shapes,
            }
        taken = {name: value for name, value in options.items() if name in _TAKEN and value}
        return pallas_call.pallas_call(kernel, out_shape, kernel_fn=kernel_fn, **taken)

    return stand_in
