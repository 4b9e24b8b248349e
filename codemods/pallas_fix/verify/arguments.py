"""The arguments of a case. `str` of each gives its text in the case grammar."""

from __future__ import annotations

from dataclasses import dataclass

from pallas_fix.dtypes import DTYPES

KEYS = {"fry": "threefry2x32", "rbg": "rbg", "urbg": "unsafe_rbg"}
"""The kinds of random keys by their tags in jaxprs (jax/_src/prng.py)."""


@dataclass(frozen=True, slots=True)
class Values:
    """What an array holds: `zeros`, `range` with bounds (low, high), or `file` with a path."""

    kind: str
    low: int = 0
    high: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.kind == "range":
            return f":range({self.low},{self.high})"
        return f":file({self.path})" if self.kind == "file" else ":zeros"


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument; `dtype` is a key of `dtypes.DTYPES`."""

    dtype: str
    shape: tuple[int, ...]
    values: Values | None = None

    def __str__(self) -> str:
        return f"{self.dtype}[{_commas(self.shape)}]{self.values or ''}"


@dataclass(frozen=True, slots=True)
class Key:
    """A random key argument; `kind` is a key of `KEYS`."""

    kind: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"key<{self.kind}>[{_commas(self.shape)}]"


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype as an argument, static: `jnp.bfloat16`, `np.int8`, or `dtype<bf16>`.

    `kind` is `jnp` or `np` for the type of that module, and `dtype` for what an array has as its
    dtype. `name` is a key of `dtypes.DTYPES`.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"dtype<{self.name}>" if self.kind == "dtype" else f"{self.kind}.{DTYPES[self.name]}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A Python literal, which is static: the traced function closes over it."""

    value: bool | int | float | complex | str | bytes | None

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple, list or dict of values, by its opening bracket; `keys` only for a dict."""

    bracket: str
    items: tuple[Value, ...]
    keys: tuple[Literal, ...] = ()

    def __str__(self) -> str:
        if self.bracket == "{":
            pairs = zip(self.keys, self.items, strict=True)
            return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
        inner = ", ".join(map(str, self.items))
        if self.bracket == "[":
            return f"[{inner}]"
        return f"({inner},)" if len(self.items) == 1 else f"({inner})"


Value = Array | Key | Dtype | Literal | Group


def _commas(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes))
