"""The arguments of a case. `str` of each gives its text in the case grammar."""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = {
    "bool": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (2, 4, 8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
    "f4_e2m1fn": "float4_e2m1fn",
    "f8_e3m4": "float8_e3m4",
    "f8_e4m3": "float8_e4m3",
    "f8_e4m3fn": "float8_e4m3fn",
    "f8_e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2": "float8_e5m2",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e8m0fnu": "float8_e8m0fnu",
}
"""The dtypes by their names in jaxprs (`short_dtype_name`, jax/_src/dtypes.py)."""

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
    """An array argument; `dtype` is a key of `DTYPES`."""

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


Value = Array | Key | Literal | Group


def _commas(sizes: tuple[int, ...]) -> str:
    return ",".join(map(str, sizes))
