"""The words of a text, without parsing it."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W\d]\w*")
_PUBLIC = re.compile(
    r"^[ \t]*(?:import[ \t]+jax\b|from[ \t]+jax(?!\._src)[\w.]*[ \t]+import)", re.MULTILINE
)


@lru_cache(maxsize=2)
def identifiers(text: str) -> frozenset[str]:
    """Every word that may be a name; those of strings and comments are among them."""
    return frozenset(_WORD.findall(text))


def imports_jax(text: str) -> bool:
    """True if some line imports jax, or from a public module of it."""
    return _PUBLIC.search(text) is not None
