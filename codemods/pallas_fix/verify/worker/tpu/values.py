"""Where the values of a kernel come from, while it is traced."""

from __future__ import annotations

from typing import Any


class Values:
    """What is known of values, by identity."""

    def __init__(self) -> None:
        self._exact: dict[int, tuple[Any, Any]] = {}
        self._loaded: dict[int, tuple[Any, Any, Any]] = {}

    def rounded(self, value: Any, exact: Any) -> Any:
        """Remember that a value is that sum, rounded to the dtype of its accumulator."""
        self._exact[id(value)] = value, exact
        return value

    def exact(self, value: Any) -> Any:
        """The sum that was rounded to a value; None if it is no such value."""
        return self._exact.get(id(value), (value, None))[1]

    def loaded(self, value: Any, ref: Any, index: Any) -> Any:
        """Remember that a value is what a ref held."""
        self._loaded[id(value)] = value, ref, index
        return value

    def origin(self, value: Any) -> tuple[Any, Any] | None:
        """The ref and the index that a value was loaded with; None if it was not loaded."""
        known = self._loaded.get(id(value))
        return known[1:] if known is not None else None
