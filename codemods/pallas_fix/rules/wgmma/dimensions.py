"""Shapes, dimensions, dtypes and indices, as expressions write them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping

from pallas_fix.facts.constants import Constants
from pallas_fix.facts.indexing import is_whole
from pallas_fix.facts.names import Function, Names
from pallas_fix.rules.wgmma.reaching import Assigned, Reaching
from pallas_fix.rules.wgmma.typed import Dim, Shape, Typed, other_shape

Known = Mapping[tuple[Function, str], Typed]
"""The types of parameters, where a call says what they are."""

NOTHING: Known = {}
_WINDOWS = ("pl.ds", "pl.dslice")


class Dimensions(ABC):
    """The part of the inference that reads shapes and indices."""

    def __init__(self, names: Names, constants: Constants) -> None:
        self._names = names
        self._constants = constants
        self._reaching = Reaching(names)

    @abstractmethod
    def of(self, expr: ast.expr | None, known: Known = NOTHING) -> Typed: ...

    @abstractmethod
    def held(self, expr: ast.Attribute, base: ast.expr, known: Known) -> Typed: ...

    def shape(self, expr: ast.expr | None, known: Known = NOTHING) -> Shape | None:
        """The shape that an expression such as `(M, N)` or `acc.shape` stands for."""
        match expr:
            case None:
                return None
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                found: list[Dim] = []
                for element in elements:
                    if isinstance(element, ast.Starred):
                        inner = self.shape(element.value, known)
                        if inner is None:
                            return None
                        found.extend(inner)
                    else:
                        found.append(self.dim(element, known))
                return tuple(found)
            case ast.Attribute(value=base, attr="shape"):
                return self.held(expr, base, known).shape
            case ast.Name():
                definition = self._reaching.of(expr)
                if isinstance(definition, Assigned) and not isinstance(definition.value, ast.Name):
                    return self.shape(definition.value, known)
            case ast.Call(func=func, args=[inner]) if self._names.qualified(func) == "jnp.shape":
                return self.of(inner, known).shape
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self.shape(left, known), self.shape(right, known)
                return None if first is None or second is None else first + second
        folded = self._constants.shape(expr)
        return folded if folded is None else tuple(folded)

    def dim(self, expr: ast.expr, known: Known = NOTHING) -> Dim:
        """One dimension: a number, or a symbol for an expression that always means the same."""
        value = self._constants.fold(expr)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(expr, ast.Subscript):
            at = self._constants.fold(expr.slice)
            shape = self.shape(expr.value, known)
            if shape is not None and isinstance(at, int) and -len(shape) <= at < len(shape):
                return shape[at]
        if isinstance(expr, ast.Name):
            definition = self._reaching.of(expr)
            if isinstance(definition, Assigned):
                return self.dim(definition.value, known)
        return self.symbol(expr)

    def dtype(self, expr: ast.expr | None, known: Known = NOTHING) -> str | None:
        """The dtype that an expression such as `jnp.float32` or `x.dtype` stands for."""
        if expr is None:
            return None
        found = self._constants.dtype(expr)
        if found is not None:
            return found
        if isinstance(expr, ast.Attribute) and expr.attr == "dtype":
            return self.held(expr, expr.value, known).dtype
        if isinstance(expr, ast.Name):
            definition = self._reaching.of(expr)
            if isinstance(definition, Assigned):
                return self.dtype(definition.value, known)
        symbol = self.symbol(expr)
        return None if symbol is None else f"@{symbol}"

    def symbol(self, expr: ast.expr) -> str | None:
        """A text that is the same for expressions that always have the same value."""
        scopes: list[str] = []
        for node in ast.walk(expr):
            match node:
                case ast.Name(id=name):
                    found = self._names.lookup(name, self._names.scope(node))
                    kinds = [b.kind for b in found[1]] if found is not None else []
                    if found is None or kinds not in (["param"], ["assign"], ["import"]):
                        return None
                    scopes.append(str(id(found[0])))
                case ast.Attribute() | ast.Constant() | ast.BinOp() | ast.operator():
                    pass
                case ast.Subscript() | ast.expr_context() | ast.UnaryOp() | ast.unaryop():
                    pass
                case _:
                    return None
        return f"{'.'.join(scopes)}:{ast.unparse(expr)}"

    def number(self, expr: ast.expr | None) -> object:
        """The constant that an expression is, or the marker for what is not one."""
        return self._constants.fold(expr)

    def qualified(self, expr: ast.expr) -> str | None:
        """The canonical name of an expression."""
        return self._names.qualified(expr)

    def covers(self, index: ast.expr, shape: Shape | None) -> bool:
        """True for an index that certainly selects all of an array of this shape."""
        if is_whole(index, self._names):
            return True
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if shape is None or len(parts) > len(shape):
            return False
        return all(
            is_whole(part, self._names) or self._whole_slice(part, dim)
            for part, dim in zip(parts, shape, strict=False)
        )

    def trivial(self, index: ast.expr, shape: Shape | None) -> bool:
        """True for an index with which jax lets a whole accumulator be stored.

        `...`, or a tuple with a full slice for each of its entries (`is_trivial_index` in
        jax/_src/pallas/mosaic_gpu/core.py).
        """
        if isinstance(index, ast.Tuple):
            return not any(isinstance(p, ast.Constant) for p in index.elts) and self.covers(
                index, shape
            )
        return isinstance(index, ast.Constant) and index.value is Ellipsis

    def partial(self, index: ast.expr, shape: Shape | None) -> bool:
        """True for an index that jax certainly refuses for a store."""
        if not isinstance(index, ast.Tuple):
            window = isinstance(index, ast.Call) and self._names.qualified(index.func) in _WINDOWS
            number = isinstance(self._constants.fold(index), int)
            return isinstance(index, ast.Slice) or window or number
        if any(isinstance(part, ast.Constant) for part in index.elts):
            return True
        lengths = self.indexed(shape, index)
        return other_shape(lengths, shape)

    def indexed(self, shape: Shape | None, index: ast.expr) -> Shape | None:
        """The shape of an array after basic indexing."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if shape is None or any(_is_ellipsis(p) for p in parts[:-1]):
            return None
        found: list[Dim] = []
        rest = list(shape)
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is None:
                found.append(1)
                continue
            if _is_ellipsis(part):
                break
            if not rest:
                return None
            dim = rest.pop(0)
            if isinstance(part, ast.Slice):
                found.append(self._sliced(dim, part))
            elif isinstance(part, ast.Call):
                is_window = self.qualified(part.func) in ("pl.ds", "pl.dslice")
                if not is_window or len(part.args) != 2:
                    return None
                found.append(self.dim(part.args[1]))
            elif not isinstance(self.number(part), int):
                return None
        return (*found, *rest)

    def _whole_slice(self, index: ast.expr, dim: Dim) -> bool:
        match index:
            case ast.Slice(lower=lower, upper=upper, step=None):
                starts = lower is None or self.dim(lower) == 0
                return starts and (upper is None or (dim is not None and self.dim(upper) == dim))
            case ast.Call(args=[start, length], keywords=[]):
                if self._names.qualified(index.func) in _WINDOWS:
                    return self.dim(start) == 0 and dim is not None and self.dim(length) == dim
        return False

    def _sliced(self, dim: Dim, part: ast.Slice) -> Dim:
        if part.step is not None:
            return None
        if part.lower is None and part.upper is None:
            return dim
        low = 0 if part.lower is None else self.number(part.lower)
        high = dim if part.upper is None else self.number(part.upper)
        if not isinstance(low, int) or not isinstance(high, int) or low < 0 or high < low:
            return None
        return min(high, dim) - min(low, dim) if isinstance(dim, int) else None


def _is_ellipsis(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is Ellipsis
