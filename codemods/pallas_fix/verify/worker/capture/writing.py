"""Values in the case grammar (`verify/cases.py`): what an argument of a function is written as."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .functions import Refused

LONGEST = 1500
"""Characters of an argument; one that is longer is data, not a setting."""

MOST_NUMBERS = 1 << 20
"""Elements of an array of integers whose range is looked up."""


class Refusal(Exception):
    """A value that the grammar cannot say: `an object of type Mesh`."""


class Writer:
    """Writes values; `dtypes` and `keys` have the names that the grammar has for those of jax."""

    def __init__(self, dtypes: Mapping[str, str], keys: Mapping[str, str]) -> None:
        self._dtypes = dtypes
        self._keys = keys

    def value(self, value: Any) -> str | Refused:
        """The text of an argument, or why there is none."""
        try:
            text = self._any(value)
        except Refusal as refusal:
            return Refused(str(refusal), value)
        return text if len(text) <= LONGEST else Refused("too long to be written", value)

    def aval(self, value: Any) -> str:
        """Shape and dtype of an array, tracers too. Raises Refusal."""
        kind = jax.typeof(value)
        if type(kind).__name__ != "ShapedArray":
            raise Refusal(f"an object of type {type(kind).__name__}")
        if not all(isinstance(size, int) for size in kind.shape):
            raise Refusal("an array of symbolic shape")
        shape = ",".join(map(str, kind.shape))
        if jax.dtypes.issubdtype(kind.dtype, jax.dtypes.prng_key):
            name = str(jax.random.key_impl(value))
            if name not in self._keys:
                raise Refusal(f"a random key of kind {name}")
            return f"key<{self._keys[name]}>[{shape}]"
        name = self._dtypes.get(kind.dtype.name)
        if name is None:
            raise Refusal(f"an array of dtype {kind.dtype.name}")
        return f"{name}[{shape}]"

    def _any(self, value: Any) -> str:
        if value is None or isinstance(value, bool) or type(value) in (int, str, bytes):
            return repr(value)
        if type(value) is float:
            if not math.isfinite(value):
                raise Refusal(f"the number {value}")
            return repr(value)
        if isinstance(value, (np.bool_, np.integer)):
            return repr(value.item())
        if isinstance(value, int) and type(value).__module__.startswith("jax."):
            return repr(int(value))  # a size, as jax has it inside of its own functions
        if isinstance(value, (jax.Array, np.ndarray, np.generic)):
            return self.aval(value) + self._range(value)
        if isinstance(value, np.dtype) or (isinstance(value, type) and hasattr(value, "dtype")):
            return self._dtype(value)
        if type(value) is tuple:
            items = [self._any(item) for item in value]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        if type(value) is list:
            return f"[{', '.join(map(self._any, value))}]"
        if type(value) is dict:
            pairs = [f"{self._key(key)}: {self._any(item)}" for key, item in value.items()]
            return f"{{{', '.join(pairs)}}}"
        raise Refusal(_named(value))

    def _dtype(self, value: Any) -> str:
        """A dtype, or one of the types that numpy and jax have for them."""
        if isinstance(value, np.dtype):
            if value.name in self._dtypes:
                return f"dtype<{self._dtypes[value.name]}>"
            raise Refusal(f"the dtype {value}")
        for module, path in ((jnp, "jnp"), (np, "np")):
            for name in self._dtypes:
                if getattr(module, _ATTRIBUTES.get(name, name), None) is value:
                    return f"{path}.{name}"
        raise Refusal(_named(value))

    def _key(self, key: Any) -> str:
        if type(key) not in (str, int, bool):
            raise Refusal(f"a dict with {_named(key)} as a key")
        return repr(key)

    def _range(self, value: Any) -> str:
        """What integers lie between, as they may be indices or lengths; those of a tracer may not.

        Small integers are data: any will do.
        """
        known = not isinstance(value, jax.core.Tracer) and value.size
        if not known or value.size > MOST_NUMBERS or value.dtype.name not in _INDICES:
            return ""
        low, high = int(np.min(value)), int(np.max(value))
        return ":zeros" if low == high == 0 else f":range({low},{high + 1})"


_ATTRIBUTES = {"bool": "bool_"}

_INDICES = ("int32", "int64", "uint32", "uint64")


def _named(value: Any) -> str:
    if isinstance(value, type):
        return f"the type {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    return f"an object of type {type(value).__name__}"
