"""Shapes and dtypes of arrays as far as the code tells them, and how operations change them.

What is not certain stays None. Nothing here reads the file; `shapes` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Dim = int | str | None
"""A number, a symbol that stands for one number, or None for what is not known."""

Shape = tuple[Dim, ...]

_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64")
_INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@dataclass(frozen=True, slots=True)
class Typed:
    """Shape and dtype of a value; a shape of None is one of which not even the rank is known.

    `weak` is the kind (`int`, `float`, `bool`) of a Python number, or of an array made from
    one, whose dtype gives way to that of the other operand. A dtype that starts with `@` is a
    symbol.
    """

    shape: Shape | None = None
    dtype: str | None = None
    weak: str = ""

    @property
    def scalar(self) -> bool:
        """True for a value known to have no dimensions."""
        return self.shape == ()

    def show(self) -> str:
        """The type as a reader would write it: `float32[64,128]`."""
        dims = ",".join(
            "?" if d is None or isinstance(d, str) else str(d) for d in self.shape or ()
        )
        dtype = "?" if self.dtype is None or self.dtype.startswith("@") else self.dtype
        return f"{dtype}[{dims}]" if self.shape is not None else f"{dtype}[...]"


UNKNOWN = Typed()

_PYTHON = {"bool": "bool", "int": "int32", "float": "float32"}


def python_number(kind: str) -> Typed:
    """The type of a Python number of a kind."""
    return Typed((), _PYTHON[kind], kind)


def is_float(dtype: str | None) -> bool:
    """True for float dtypes, and for symbols: accumulators of ints are rare, and never divided."""
    return dtype in _FLOATS or (dtype is not None and dtype.startswith("@"))


def same_shape(a: Shape | None, b: Shape | None) -> bool:
    """True where two shapes are certainly equal."""
    return a is not None and a == b and None not in a


def other_shape(a: Shape | None, b: Shape | None) -> bool:
    """True where two shapes are certainly not equal."""
    if a is None or b is None:
        return False
    return len(a) != len(b) or any(_other(x, y) for x, y in zip(a, b, strict=True))


def same_dtype(a: str | None, b: str | None) -> bool:
    """True where two dtypes are certainly equal."""
    return a is not None and a == b


def other_dtype(a: str | None, b: str | None) -> bool:
    """True where two dtypes are certainly not equal."""
    if a is None or b is None or a.startswith("@") or b.startswith("@"):
        return False
    return a != b


def join(types: list[Typed]) -> Typed:
    """The type of a value that is one of several."""
    if not types:
        return UNKNOWN
    first = types[0]
    shape: Shape | None = first.shape
    dtype, weak = first.dtype, first.weak
    for other in types[1:]:
        dtype = dtype if dtype == other.dtype else None
        weak = weak if weak == other.weak else ""
        if shape is None or other.shape is None or len(shape) != len(other.shape):
            shape = None
        else:
            shape = tuple(a if a == b else None for a, b in zip(shape, other.shape, strict=True))
    return Typed(shape, dtype, weak)


def broadcast(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of an elementwise operation on two shapes."""
    if a is None or b is None:
        return None
    length = max(len(a), len(b))
    left: Shape = (1,) * (length - len(a)) + a
    right: Shape = (1,) * (length - len(b)) + b
    return tuple(_broadcast_dim(x, y) for x, y in zip(left, right, strict=True))


def elementwise(a: Typed, b: Typed, *, divides: bool = False) -> Typed:
    """The type of an elementwise operation on two values."""
    dtype, weak = _promote(a, b)
    result = Typed(broadcast(a.shape, b.shape), dtype, weak)
    return to_float(result) if divides else result


def to_float(value: Typed) -> Typed:
    """The type after a function that turns ints to floats (`exp`, `/`)."""
    if value.dtype is None or is_float(value.dtype):
        return value
    weak = "float" if value.weak else ""
    return replace(value, dtype="float32", weak=weak)


def reduced(value: Typed, axis: int | None, keep: bool) -> Typed:
    """The type after a reduction over one axis, or over all of them."""
    shape = value.shape
    if axis is None:
        return replace(value, shape=None if keep else (), weak="")
    if shape is None or not -len(shape) <= axis < len(shape):
        return Typed(None, value.dtype)
    at = axis % len(shape)
    return replace(value, shape=shape[:at] + ((1,) if keep else ()) + shape[at + 1 :], weak="")


def size(shape: Shape | None) -> int | None:
    """The number of elements, where it is known."""
    total = 1
    for dim in shape if shape is not None else (None,):
        if not isinstance(dim, int):
            return None
        total *= dim
    return total


def _other(a: Dim, b: Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a != b


def _broadcast_dim(a: Dim, b: Dim) -> Dim:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    numbers = [d for d in (a, b) if isinstance(d, int)]
    return numbers[0] if len(numbers) == 1 else None


def _promote(a: Typed, b: Typed) -> tuple[str | None, str]:
    if a.weak and b.weak:
        kind = max(a.weak, b.weak, key=list(_PYTHON).index)
        return _PYTHON[kind], kind
    if b.weak:
        a, b = b, a
    if a.weak:
        return _promote_weak(a.weak, b.dtype), ""
    if a.dtype == b.dtype:
        return a.dtype, ""
    return _promote_strong(a.dtype, b.dtype), ""


def _promote_weak(weak: str, dtype: str | None) -> str | None:
    if dtype is None or is_float(dtype) or weak == "bool":
        return dtype
    if dtype == "bool":
        return _PYTHON[weak]
    return dtype if weak == "int" else "float32"


def _promote_strong(a: str | None, b: str | None) -> str | None:
    if a == "bool":
        return b
    if b == "bool":
        return a
    if a in _INTS and is_float(b):
        return b
    if b in _INTS and is_float(a):
        return a
    wide = ("float16", "bfloat16", "float32", "float64")
    if a in wide and b in wide:
        return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=wide.index)
    return None
