"""The way from a stored value down to where its shape was made, through elementwise work."""

from __future__ import annotations

import ast
from collections.abc import Callable

from pallas_fix.facts.names import Names
from pallas_fix.rules.wgmma.operations import BINARY, DIVIDES, FLOAT, SAME
from pallas_fix.rules.wgmma.reaching import Assigned, Reaching
from pallas_fix.rules.wgmma.shapes import Shapes
from pallas_fix.rules.wgmma.typed import Shape, same_shape

_RESHAPES = frozenset({"reshape", "ravel", "flatten"})
_RESHAPE_FUNCTIONS = frozenset({"jnp.reshape", "lax.reshape", "jnp.ravel", "jnp.broadcast_to"})
_TRANSPOSES = frozenset({"transpose", "swapaxes"})


class Paths:
    """Follows values of one module backwards."""

    def __init__(self, names: Names, shapes: Shapes) -> None:
        self._names = names
        self._shapes = shapes
        self._reaching = Reaching(names)

    def find(self, value: ast.expr, wanted: Callable[[ast.expr], bool]) -> ast.expr | None:
        """The first wanted expression below `value` with only elementwise work by scalars above.

        A name is followed to its one assignment where nothing else uses it.
        """
        current: ast.expr | None = value
        for _ in range(32):
            if current is None or wanted(current):
                return current
            current = self._operand(current)
        return None

    def reshaped(self, value: ast.expr, shape: Shape | None) -> tuple[ast.expr, ast.expr] | None:
        """A reshape of an array that already had `shape`, on the way to `value`.

        Returns the whole expression and the array in it.
        """

        def wanted(node: ast.expr) -> bool:
            inner = self._under_reshapes(node)
            return inner is not node and same_shape(self._shapes.of(inner).shape, shape)

        found = self.find(value, wanted)
        return None if found is None else (found, self._under_reshapes(found))

    def transposed(self, value: ast.expr) -> bool:
        """True where the value is an array of which the dimensions were swapped."""
        return self.find(value, self._is_transpose) is not None

    def is_reshape(self, node: ast.expr) -> bool:
        """True for an expression that gives an array another shape, in the same order."""
        return self._reshape_operand(node) is not None

    def _under_reshapes(self, node: ast.expr) -> ast.expr:
        while True:
            inner = self._reshape_operand(node)
            if inner is None:
                return node
            node = inner

    def _reshape_operand(self, node: ast.expr) -> ast.expr | None:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _RESHAPES:
                if self._names.qualified(node.func) is None:
                    return inner
        if isinstance(node, ast.Call) and node.args:
            name = self._names.qualified(node.func)
            return node.args[0] if name in _RESHAPE_FUNCTIONS else None
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            added = [p for p in parts if isinstance(p, ast.Constant) and p.value is None]
            whole = all(p in added or _selects_all(p) for p in parts)
            return node.value if added and whole else None
        return None

    def _is_transpose(self, node: ast.expr) -> bool:
        match node:
            case ast.Attribute(attr="T"):
                return True
            case ast.Call(func=ast.Attribute(attr=attr)):
                return attr in _TRANSPOSES
            case _:
                return False

    def _operand(self, expr: ast.expr) -> ast.expr | None:
        """The array of an elementwise operation whose other operands are scalars."""
        match expr:
            case ast.Name():
                definition = self._reaching.of(expr)
                single = isinstance(definition, Assigned) and self._uses(expr) == 1
                return definition.value if isinstance(definition, Assigned) and single else None
            case ast.UnaryOp(operand=operand):
                return operand
            case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.MatMult):
                return self._one_array(left, right)
            case ast.Call(func=ast.Attribute(value=inner, attr="astype")):
                return inner
            case ast.Call(args=[first, *rest]):
                name = self._names.qualified(expr.func)
                if name == "plgpu.layout_cast":
                    return first
                if name in SAME or name in FLOAT:
                    scalars = all(self._shapes.of(other).scalar for other in rest)
                    return first if scalars else None
                if (name in BINARY or name in DIVIDES) and len(rest) == 1:
                    return self._one_array(first, rest[0])
        return None

    def _one_array(self, left: ast.expr, right: ast.expr) -> ast.expr | None:
        if self._shapes.of(right).scalar:
            return left
        return right if self._shapes.of(left).scalar else None

    def _uses(self, name: ast.Name) -> int:
        """How often the variable is read."""
        found = self._names.lookup(name.id, self._names.scope(name))
        if found is None:
            return 0
        return sum(
            isinstance(node, ast.Name)
            and node.id == name.id
            and isinstance(node.ctx, ast.Load)
            and self._names.lookup(node.id, self._names.scope(node)) == found
            for node in ast.walk(found[0].node)
        )


def _selects_all(part: ast.expr) -> bool:
    if isinstance(part, ast.Constant):
        return part.value is Ellipsis
    return isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None
