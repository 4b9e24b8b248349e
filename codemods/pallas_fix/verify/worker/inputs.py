"""The arguments of a case: what to trace with, and numbers to run with."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import load

Draw = Callable[[np.random.Generator, tuple[int, ...]], Any]

KINDS: dict[str, Draw] = {
    "plain": lambda random, shape: random.standard_normal(shape),
    "exact": lambda random, shape: random.integers(-1, 2, size=shape),
    "positive": lambda random, shape: random.uniform(0.5, 1.0, size=shape),
}
"""What floats are drawn: normal ones; -1, 0 and 1, whose sums of up to 2**24 products are exact in
float32 in any order; or positive ones, whose sums are as large as the sums of absolute terms."""


class Inputs:
    """Arguments split into arrays, which are traced, and the rest, which is closed over."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        leaves, self._tree = jax.tree.flatten((args, kwargs), is_leaf=_is_leaf)
        self._leaves = leaves
        self._dynamic = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]

    @property
    def avals(self) -> list[Any]:
        """Shapes and dtypes of the arrays, in order."""
        return [_aval(self._leaves[index]) for index in self._dynamic]

    def arrays(self, seed: int, root: str, kind: str = "plain") -> list[Any]:
        """Numbers for the arrays, in order, the same ones for the same seed.

        `kind` is one of `KINDS`; it is for the floats that the case leaves open.
        """
        random = np.random.default_rng(seed)
        return [_numbers(self._leaves[index], random, root, KINDS[kind]) for index in self._dynamic]

    def bind(self, function: Callable[..., Any]) -> Callable[..., list[Any]]:
        """A function of the arrays alone, which returns the arrays of the result."""

        def call(*arrays: Any) -> list[Any]:
            leaves = list(self._leaves)
            for index, array in zip(self._dynamic, arrays, strict=True):
                leaves[index] = array
            args, kwargs = jax.tree.unflatten(self._tree, leaves)
            return [leaf for leaf in jax.tree.leaves(function(*args, **kwargs)) if _is_array(leaf)]

        return call


def inputs_of(module: Any, task: dict[str, Any]) -> Inputs:
    """The arguments of the task's case; a maker is called for them."""
    if task["maker"]:
        args, kwargs = load.find(module, task["maker"])()
        return Inputs(tuple(args), dict(kwargs))
    args = tuple(decode(arg) for arg in task["args"])
    return Inputs(args, {name: decode(value) for name, value in task["kwargs"]})


class Spec:
    """An array or key of a case, not yet made."""

    def __init__(self, encoded: dict[str, Any]) -> None:
        self.shape = tuple(encoded["shape"])
        self.key = encoded.get("key")
        self.dtype = encoded.get("array")
        self.values = encoded.get("values")


def decode(encoded: dict[str, Any]) -> Any:
    """An argument of a case from its JSON form, arrays as `Spec`."""
    if "literal" in encoded:
        return ast.literal_eval(encoded["literal"])
    if "dtype" in encoded:
        return _dtype(encoded["dtype"], encoded["name"])
    if "group" not in encoded:
        return Spec(encoded)
    items = [decode(item) for item in encoded["items"]]
    if encoded["group"] == "{":
        return dict(zip(map(ast.literal_eval, encoded["keys"]), items, strict=True))
    return tuple(items) if encoded["group"] == "(" else items


def _dtype(kind: str, name: str) -> Any:
    if kind == "dtype":
        return jnp.dtype(name)
    name = {"bool": "bool_"}.get(name, name)
    return getattr(jnp if kind == "jnp" else np, name)


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, Spec)


def _is_array(value: Any) -> bool:
    return isinstance(value, Spec | jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def _aval(value: Any) -> Any:
    if isinstance(value, Spec) and value.key:
        return jax.eval_shape(lambda: _key(value, 0))
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return jax.ShapeDtypeStruct(value.shape, value.dtype)
    return jax.ShapeDtypeStruct(value.shape, jax.dtypes.canonicalize_dtype(value.dtype))


def _key(spec: Spec, seed: int) -> Any:
    key = jax.random.key(seed, impl=spec.key)
    return jax.random.split(key, spec.shape) if spec.shape else key


def _numbers(value: Any, random: np.random.Generator, root: str, draw: Draw) -> Any:
    if not isinstance(value, Spec):
        if isinstance(value, jax.ShapeDtypeStruct):
            return jnp.asarray(draw(random, value.shape)).astype(value.dtype)
        return value
    if value.key:
        return _key(value, int(random.integers(1 << 31)))
    kind = (value.values or {}).get("kind")
    if kind == "zeros":
        return jnp.zeros(value.shape, value.dtype)
    if kind == "range":
        numbers = random.integers(value.values["low"], value.values["high"], size=value.shape)
    elif kind == "file":
        numbers = np.load(os.path.join(root, value.values["path"]), allow_pickle=False)
        if numbers.shape != value.shape:
            raise ValueError(f"{value.values['path']} holds {numbers.shape}, not {value.shape}")
    elif value.dtype == "bool":
        numbers = random.integers(0, 2, size=value.shape)
    elif value.dtype.startswith("uint"):
        numbers = random.integers(0, 3 if value.dtype == "uint2" else 8, size=value.shape)
    elif value.dtype in ("int32", "int64"):
        numbers = random.integers(0, 4, size=value.shape)  # most are indices or lengths
    elif value.dtype.startswith("int"):
        low = {"int2": -2, "int4": -8}.get(value.dtype, -50)
        numbers = random.integers(low, -low, size=value.shape)
    else:
        numbers = draw(random, value.shape)
    return jnp.asarray(numbers).astype(value.dtype)
