"""What the name of a flag or a function says it is about, where nothing else tells.

A file often has only the name of what it asks: a flag from another module, a parameter, a method.
Names that speak of the age or the version of jax or Pallas count wherever they come from. Names
that only speak of an age or a version count where they are imported, as do `HAS_` and `HAVE_`
before what is no device and no package. What a module of shims keeps counts if it is no ordinary
setting. `DEBUG`, `USE_BF16`, `HAS_TPU`, `USE_PALLAS`, `tpu_version` say nothing of the kind.
"""

from __future__ import annotations

import re
from itertools import pairwise

_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_JAX = frozenset("jax jaxlib pallas pltpu plgpu mosaic api apis".split())
_AGE = frozenset(
    "new newer old older legacy modern recent compat ge gt le lt least before after "
    "since pre post".split()
)
_BETWEEN = frozenset("is at v version lib".split())
_VERSION = frozenset("version versions ver versioned".split())
_WHOLE = frozenset("jaxver jaxversion oldjax newjax".split())
_ABOUT_VERSIONS = _VERSION | frozenset(
    "jax jaxlib pallas is at least most get parse parsed check checks current installed min max "
    "minimum info tuple str pkg package ge gt le lt eq new newer old older".split()
)
_IMPORTED = frozenset("new newer old older legacy modern compat".split())
_HAS = frozenset("has have supports".split())
_AVAILABLE = frozenset(
    "tpu gpu cpu cuda rocm hip torch triton pallas jax jaxlib flax numpy np tf tensorflow mosaic "
    "bf fp int float accelerator device hardware is available".split()
)
_SHIMS = frozenset("compat shim shims polyfill polyfills backport backports".split())
_ORDINARY = _AVAILABLE | frozenset("debug interpret verbose use enable backend platform".split())
_PREDICATES = _HAS | frozenset("is at needs requires uses can".split())
_HARDWARE = frozenset("tpu gpu chip device platform cuda driver hardware".split())


def speaks(name: str) -> bool:
    """True for a name that speaks of the age or the version of jax, wherever it comes from."""
    tokens = _tokens(name)
    if _is_dunder_version(name) or _WHOLE.intersection(tokens):
        return True
    if _VERSION.intersection(tokens) and {"jax", "jaxlib", "pallas"}.intersection(tokens):
        return True
    kept = [token for token in tokens if token not in _BETWEEN]
    return any(_is_pair(one, other) for one, other in pairwise(kept))


def speaks_where_imported(name: str) -> bool:
    """True for a name of another module that is likely to speak of the age of jax."""
    tokens = _tokens(name)
    if speaks(name) or _IMPORTED.intersection(tokens):
        return True
    if _VERSION.intersection(tokens):
        return _ABOUT_VERSIONS.issuperset(t for t in tokens if not t.isdigit())
    rest = {t for t in tokens if not t.isdigit()} - _HAS
    return name.isupper() and bool(_HAS.intersection(tokens)) and not rest <= _AVAILABLE


def is_of_shims(module: str) -> bool:
    """True for the path of a module that speaks of shims or versions: `mine.compat`."""
    return any(
        _SHIMS.intersection(tokens)
        or (_VERSION.intersection(tokens) and _ABOUT_VERSIONS.issuperset(tokens))
        for tokens in map(_tokens, module.split("."))
    )


def is_of_an_age(name: str) -> bool:
    """True for the name of something that is for older or newer versions: `_run_old`."""
    return bool(_IMPORTED.intersection(_tokens(name)))


def is_predicate(name: str) -> bool:
    """True for the name of a function that answers a question: `has_new_params`."""
    return bool(_PREDICATES.intersection(_tokens(name)))


def is_ordinary(name: str) -> bool:
    """True for the name of a usual setting."""
    return bool(_ORDINARY.intersection(_tokens(name)))


def is_of_others(path: str) -> bool:
    """True for the path of something that speaks of a device or of another package."""
    tokens = set(_tokens(path))
    return bool(tokens & (_ORDINARY | _HARDWARE) - _JAX)


def is_version_of_jax(path: str) -> bool:
    """True for the path of a version that jax keeps, and not of a chip's."""
    tokens = _tokens(path.rpartition(".")[2])
    return bool(_VERSION.intersection(tokens)) and not _HARDWARE.intersection(tokens)


def _is_pair(one: str, other: str) -> bool:
    if (one in _JAX and other in _AGE) or (one in _AGE and other in _JAX):
        return True
    return one in ("jax", "jaxlib") and (other.isdigit() or other == "api")


def _tokens(name: str) -> tuple[str, ...]:
    return tuple(token.lower() for token in _TOKEN.findall(name))


def _is_dunder_version(name: str) -> bool:
    return name in ("__version__", "__version_info__")
