"""Which jax this package knows from the inside. Any other may compute something else."""

from __future__ import annotations

import jax

from ..chips import Unavailable

GENERATIONS = {(0, 10, 2): "0.10.2", (0, 11, 0): "0.11.0", (0, 11, 2): "0.11.2"}
"""First version and name of each generation. The last one ends before `UNKNOWN`."""

UNKNOWN = (0, 13, 0)


def generation() -> str:
    """The generation of this jax, named after its first version. Raises Unavailable."""
    version = tuple(jax.__version_info__[:3])
    known = [name for first, name in GENERATIONS.items() if first <= version < UNKNOWN]
    if not known:
        raise Unavailable(
            f"stage not available: kernels run on the CPU under jax 0.10.2 to 0.12, and this is "
            f"jax {jax.__version__}"
        )
    return known[-1]
