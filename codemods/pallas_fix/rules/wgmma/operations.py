"""What array functions and methods do to shapes and dtypes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import replace

from pallas_fix.facts.allocations import argument
from pallas_fix.rules.wgmma.dimensions import Dimensions, Known
from pallas_fix.rules.wgmma.typed import (
    UNKNOWN,
    Shape,
    Typed,
    elementwise,
    python_number,
    reduced,
    size,
    to_float,
)

SAME = frozenset(
    """jnp.abs jnp.absolute jnp.negative jnp.positive jnp.square jnp.sign jnp.round
    jnp.conj lax.abs lax.neg lax.square lax.sign lax.stop_gradient
    lax.optimization_barrier plgpu.layout_cast jax.nn.relu jax.nn.relu6""".split()
)
"""Elementwise functions of their first argument that keep its dtype."""

FLOAT = frozenset(
    """jnp.exp jnp.exp2 jnp.expm1 jnp.log jnp.log2 jnp.log10 jnp.log1p jnp.sqrt jnp.sin jnp.cos
    jnp.tan jnp.tanh jnp.sinh jnp.cosh jnp.arctan jnp.reciprocal jnp.floor jnp.ceil jnp.trunc
    lax.exp lax.exp2 lax.log lax.log1p lax.sqrt lax.rsqrt lax.tanh lax.logistic lax.sin lax.cos
    lax.erf lax.floor lax.ceil lax.cbrt jax.nn.sigmoid jax.nn.silu jax.nn.gelu jax.nn.softplus
    jax.nn.swish jax.nn.elu jax.nn.leaky_relu""".split()
)
"""Elementwise functions of their first argument that turn ints to floats."""

BINARY = frozenset(
    """jnp.add jnp.subtract jnp.multiply jnp.maximum jnp.minimum jnp.fmax jnp.fmin jnp.power
    lax.add lax.sub lax.mul lax.max lax.min""".split()
)
"""Elementwise functions of their first two arguments."""

DIVIDES = frozenset({"jnp.divide", "jnp.true_divide", "lax.div"})

CREATORS = {"jnp.zeros": 1, "jnp.ones": 1, "jnp.empty": 1, "jnp.full": 2, "lax.full": 2}
"""Functions that make an array of a shape, with the position of their dtype."""

LIKE = {"jnp.zeros_like": 1, "jnp.ones_like": 1, "jnp.empty_like": 1, "jnp.full_like": 2}

_REDUCTIONS = frozenset({"sum", "max", "min", "mean", "prod"})
_SCALARS = frozenset({"jnp.float32", "jnp.float16", "jnp.bfloat16", "jnp.int32"})


class Operations(Dimensions):
    """The part of the inference that knows functions by name."""

    @abstractmethod
    def model(self, call: ast.Call, known: Known) -> Typed: ...

    def function(self, call: ast.Call, name: str, known: Known) -> Typed:
        """The result of a library function, by its canonical name."""
        first = self.of(argument(call, 0, "x"), known)
        if name in CREATORS or name in LIKE:
            return self._created(call, name, known)
        if name in SAME:
            return first
        if name == "jnp.clip":
            return self._clipped(call, first, 1, known)
        if name in FLOAT:
            return to_float(first)
        if name in BINARY or name in DIVIDES:
            second = self.of(call.args[1] if len(call.args) == 2 else None, known)
            return elementwise(first, second, divides=name in DIVIDES)
        if name.startswith("math."):
            return python_number("float")
        if name in _SCALARS and len(call.args) == 1 and first.scalar:
            return Typed((), name.removeprefix("jnp."))
        module, _, last = name.rpartition(".")
        if module == "jnp" and last in _REDUCTIONS:
            return self._reduced(call, first, last, 1, known)
        return self._rearranged(call, name, first, known)

    def method(self, call: ast.Call, func: ast.Attribute, known: Known) -> Typed | None:
        """The result of a method of an array, or None where it is not one."""
        held = self.of(func.value, known)
        if func.attr == "astype":
            return Typed(held.shape, self.dtype(argument(call, 0, "dtype"), known))
        if held == UNKNOWN:
            return None
        match func.attr:
            case "reshape":
                return replace(held, shape=self._reshape(held.shape, call.args, known))
            case "ravel" | "flatten" if not call.args:
                return replace(held, shape=(size(held.shape),))
            case "transpose" if not call.args:
                return self.transposed(held)
            case "transpose" if held.shape is not None and len(held.shape) == 2:
                return self.permuted(held, call.args)
            case "swapaxes":
                return self._swapped(held, call.args)
            case "clip":
                return self._clipped(call, held, 0, known)
            case "round" | "copy" | "conj":
                return held
        if func.attr in _REDUCTIONS:
            return self._reduced(call, held, func.attr, 0, known)
        return UNKNOWN

    def transposed(self, held: Typed) -> Typed:
        """The type with the dimensions in reverse."""
        return held if held.shape is None else replace(held, shape=held.shape[::-1])

    def _created(self, call: ast.Call, name: str, known: Known) -> Typed:
        position = CREATORS.get(name, LIKE.get(name))
        given = argument(call, position, "dtype")
        fill = self.of(argument(call, 1, "fill_value"), known) if name.endswith("full") else None
        if name in LIKE:
            like = self.model(call, known)
            shape = self.shape(argument(call, None, "shape"), known) or like.shape
            return Typed(shape, self.dtype(given, known) if given is not None else like.dtype)
        shape = self.shape(argument(call, 0, "shape"), known)
        if given is not None:
            return Typed(shape, self.dtype(given, known))
        if fill is not None:
            return Typed(shape, fill.dtype, fill.weak)
        return Typed(shape, "float32")

    def _clipped(self, call: ast.Call, held: Typed, at: int, known: Known) -> Typed:
        bounds = [*call.args[at:], *(k.value for k in call.keywords if k.arg != "x")]
        none = (b for b in bounds if not (isinstance(b, ast.Constant) and b.value is None))
        for bound in none:
            held = elementwise(held, self.of(bound, known))
        return held

    def _reduced(self, call: ast.Call, held: Typed, name: str, at: int, known: Known) -> Typed:
        given = argument(call, at, "axis")
        axis = None if given is None else self.number(given)
        keep = argument(call, None, "keepdims")
        if any(k.arg in ("where", "dtype", "out") for k in call.keywords):
            return UNKNOWN
        if (axis is not None and not isinstance(axis, int)) or isinstance(axis, bool):
            return UNKNOWN
        kept = self.number(keep) if keep is not None else False
        if not isinstance(kept, bool):
            return UNKNOWN
        result = reduced(held, axis, kept)
        return to_float(result) if name == "mean" else result

    def _rearranged(self, call: ast.Call, name: str, first: Typed, known: Known) -> Typed:
        match name:
            case "jnp.reshape" | "lax.reshape":
                shape = self.shape(call.args[1], known) if len(call.args) == 2 else None
                return replace(first, shape=self._with_rest(first.shape, shape))
            case "jnp.broadcast_to" | "lax.broadcast_in_dim":
                given = first if first != UNKNOWN else self.of(argument(call, 0, "array"), known)
                given = given if given != UNKNOWN else self.of(argument(call, 0, "operand"), known)
                return replace(given, shape=self.shape(argument(call, 1, "shape"), known))
            case "jnp.ravel":
                return replace(first, shape=(size(first.shape),))
            case "jnp.transpose" if len(call.args) == 1 and not call.keywords:
                return self.transposed(first)
            case "jnp.swapaxes":
                return self._swapped(first, call.args[1:])
            case "jnp.transpose" | "lax.transpose":
                two = first.shape is not None and len(first.shape) == 2
                return self.permuted(first, call.args[1:]) if two else UNKNOWN
            case "jnp.where" | "lax.select" if len(call.args) == 3:
                test = self.of(call.args[0], known)
                result = elementwise(self.of(call.args[1], known), self.of(call.args[2], known))
                around = elementwise(result, Typed(test.shape, "bool"))
                return replace(result, shape=around.shape)
            case "lax.convert_element_type":
                return Typed(first.shape, self.dtype(argument(call, 1, "new_dtype"), known))
            case "jnp.asarray" | "jnp.array":
                dtype = argument(call, 1, "dtype")
                return first if dtype is None else Typed(first.shape, self.dtype(dtype, known))
            case _:
                return UNKNOWN

    def permuted(self, held: Typed, order: list[ast.expr]) -> Typed:
        """The type of a matrix after a transposition with a given order of its axes."""
        parts = order[0].elts if len(order) == 1 and isinstance(order[0], ast.Tuple) else order
        values = [self.number(p) for p in parts]
        if held.shape is None or sorted(str(v) for v in values) != ["0", "1"]:
            return Typed(None, held.dtype)
        return self.transposed(held) if values == [1, 0] else held

    def _swapped(self, held: Typed, axes: list[ast.expr]) -> Typed:
        """The type of a matrix with two axes swapped."""
        two = held.shape is not None and len(held.shape) == 2
        different = sorted(self.number(a) in (1, -1) for a in axes) == [False, True]
        return self.transposed(held) if two and different else Typed(None, held.dtype)

    def _reshape(self, old: Shape | None, args: list[ast.expr], known: Known) -> Shape | None:
        shape = self.shape(args[0], known) if len(args) == 1 else None
        if len(args) > 1 and not any(isinstance(a, ast.Starred) for a in args):
            shape = tuple(self.dim(a, known) for a in args)
        return self._with_rest(old, shape)

    def _with_rest(self, old: Shape | None, shape: Shape | None) -> Shape | None:
        if shape is None or -1 not in shape:
            return shape
        others = size(tuple(d for d in shape if d != -1))
        total = size(old)
        rest = total // others if total is not None and others else None
        return tuple(rest if d == -1 else d for d in shape)
