"""Dotted paths of jax, and the short names that stand for them here: `pl`, `pltpu`, `plgpu`."""

from __future__ import annotations

import re

# The public modules and the private ones that they re-export (jax/experimental/pallas/*.py).
_MODULES = (
    (r"(?:jax\.experimental\.pallas|pl)\.tpu", "pltpu"),
    (r"(?:jax\.experimental\.pallas|pl)\.mosaic_gpu", "plgpu"),
    (r"(?:jax\.experimental\.pallas|pl)\.(?:triton|gpu)", "triton"),
    (r"(?:jax\.experimental\.pallas|pl)\.tpu_sc", "plsc"),
    (r"(?:jax\.experimental\.pallas|pl)\.fuser", "fuser"),
    (r"jax\.experimental\.pallas", "pl"),
    (r"jax\._src\.pallas\.mosaic\.sc_\w+", "plsc"),
    (r"jax\._src\.pallas\.mosaic_gpu\.\w+", "plgpu"),
    (r"jax\._src\.pallas\.mosaic\.\w+", "pltpu"),
    (r"jax\._src\.pallas\.triton\.\w+", "triton"),
    (r"jax\._src\.pallas\.(?!mosaic|triton)\w+", "pl"),
    (r"jax\.numpy", "jnp"),
    (r"jax\.lax", "lax"),
    (r"numpy", "np"),
)
_PREFIX = re.compile("|".join(f"(?P<m{i}>{p}(?=\\.|$))" for i, (p, _) in enumerate(_MODULES)))
_SAME = {
    "pltpu.AccMemorySpace": "pltpu.ACC",
    "plgpu.WGMMAAccumulatorRef": "plgpu.ACC",
    "pl.ANY": "pl.MemorySpace.ANY",
}
_SPACE_CLASS = re.compile(r"(pltpu|plgpu)\.(?:TPU|GPU)?MemorySpace\.(\w+)$")


def canonical(dotted: str) -> str:
    """The short name of a dotted path: `jax.experimental.pallas.tpu.VMEM` is `pltpu.VMEM`.

    Private spellings (`jax._src.pallas.mosaic.core.AccMemorySpace`) and members of the memory
    space enums (`pltpu.MemorySpace.VMEM`) come out as the public name.
    """
    dotted = short(dotted)
    member = _SPACE_CLASS.fullmatch(dotted)
    if member is not None and member[2].isupper() and member[2] not in _INVENTED:
        dotted = f"{member[1]}.{member[2]}"
    return _SAME.get(dotted, dotted)


def short(dotted: str) -> str:
    """The path with the short name of its module: `pltpu.TPUMemorySpace.ANY`."""
    match = _PREFIX.match(dotted)
    if match is None or match.lastgroup is None:
        return dotted
    return _MODULES[int(match.lastgroup[1:])][1] + dotted[match.end() :]


# Members that no jax has ever had: kept apart, so that a rule can speak of them.
_INVENTED = frozenset({"ACC", "ACCUMULATOR", "ACCUM"})


def whole(name: str) -> str:
    """The path of a short name: `pltpu.ANY` is `jax.experimental.pallas.tpu.ANY`."""
    module, dot, rest = name.partition(".")
    return f"{_WHOLE.get(module, module)}{dot}{rest}"


_WHOLE = {
    "pl": "jax.experimental.pallas",
    "pltpu": "jax.experimental.pallas.tpu",
    "plgpu": "jax.experimental.pallas.mosaic_gpu",
    "triton": "jax.experimental.pallas.triton",
    "plsc": "jax.experimental.pallas.tpu_sc",
    "fuser": "jax.experimental.pallas.fuser",
    "jnp": "jax.numpy",
    "lax": "jax.lax",
    "np": "numpy",
}
