"""Accumulators whose shape is not that of the product that goes into them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import Event, Ref
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.wgmma.stores import Traffic
from pallas_fix.rules.wgmma.trouble import Trouble
from pallas_fix.rules.wgmma.typed import Shape, Typed, other_shape

_INNER = Reason(
    "operand-mismatch",
    "the operands of wgmma do not fit each other: a.shape[1] is not b.shape[0]",
    "pass an operand transposed (b.T or plgpu.transpose_ref), or slice both alike with .at[...]",
)
_SEVERAL = Reason(
    "accumulator-shape",
    "the accumulator does not have the shape of the product, and it is not certain that one other "
    "shape would fit all its uses",
    "allocate plgpu.ACC((a.shape[0], b.shape[1]), dtype)",
)


@dataclass(frozen=True, slots=True)
class Product:
    """One `wgmma`: the call, and its operands with their shapes."""

    call: ast.Call
    a: ast.expr
    b: ast.expr
    left: Shape
    right: Shape


class Products:
    """Finds products that do not fit their accumulators in one module."""

    def __init__(self, module: Facts, traffic: Traffic) -> None:
        self._module = module
        self._shapes = traffic.shapes
        self._accumulators = traffic.accumulators

    def __iter__(self) -> Iterator[Trouble]:
        done: set[ast.AST] = set()
        for node, events in self._accumulators.nodes("wgmma"):
            product = self._product(node)
            if product is None or not isinstance(product.call, ast.Call):
                continue
            message = f"a product of {_show(product.left)} and {_show(product.right)}"
            if other_shape(product.left[1:], product.right[:1]):
                yield Trouble(node, f"{message} does not exist", reason=_INNER)
                continue
            for ref in self._refs(events):
                held = self._shapes.ref(ref).shape
                wanted = (product.left[0], product.right[1])
                place = ref.allocation.node if ref.allocation is not None else None
                if place is None or place in done or not other_shape(held, wanted):
                    continue
                done.add(place)
                found = f"{message} goes into an accumulator of {_show(held)}"
                yield self._resized(node, found, ref, product)

    def _refs(self, events: Sequence[Event]) -> list[Ref]:
        refs = [e.ref for e in events if e.ref is not None and e.how is e.ref]
        return [ref for ref in dict.fromkeys(refs) if self._accumulators.is_accumulator(ref)]

    def _product(self, node: ast.AST) -> Product | None:
        if not isinstance(node, ast.Call):
            return None
        a, b = argument(node, 1, "a"), argument(node, 2, "b")
        if a is None or b is None:
            return None
        left, right = self._operand(a), self._operand(b)
        if left is None or right is None or len(left) != 2 or len(right) != 2:
            return None
        return Product(node, a, b, left, right)

    def _operand(self, expr: ast.expr) -> Shape | None:
        """The shape of an operand of `wgmma`: a ref, a view of one, or an array."""
        kinds = ("wgmma_operand", "escape")
        refs = [e.ref for e in self._accumulators.events.get(expr, ()) if e.kind in kinds]
        known = [ref for ref in refs if ref is not None]
        return (
            self._view(expr, list(dict.fromkeys(known))) if known else self._shapes.of(expr).shape
        )

    def _view(self, expr: ast.expr, refs: list[Ref]) -> Shape | None:
        """The shape of a view of refs, by the transforms that the expression applies."""
        order: list[ast.expr] = []
        match expr:
            case ast.Name():
                return self._shapes.refs(refs, expr).shape
            case ast.Subscript(value=ast.Attribute(value=base, attr="at"), slice=index):
                held = self._view(base, refs)
                return (
                    held if self._shapes.covers(index, held) else self._shapes.indexed(held, index)
                )
            case ast.Attribute(value=base, attr="T"):
                pass
            case ast.Call(func=ast.Attribute(value=base, attr="transpose"), args=order):
                pass
            case ast.Call(func=func, args=[base, *order]):
                if self._module.names.qualified(func) != "plgpu.transpose_ref":
                    return None
            case _:
                return None
        held = self._view(base, refs)
        if held is None or len(held) != 2 or not order:
            return None if held is None else held[::-1]
        return self._shapes.permuted(Typed(held), order).shape

    def _resized(self, node: ast.AST, message: str, ref: Ref, product: Product) -> Trouble:
        """The allocation gets the shape of the product, where all its products agree on one."""
        allocation = ref.allocation
        sharing = [
            event
            for other, events in self._accumulators.by_ref.items()
            if other.allocation and allocation and other.allocation.node is allocation.node
            for event in events
        ]
        wanted = set()
        for event in sharing:
            other_product = self._product(event.node) if event.kind == "wgmma" else product
            plain = event.kind != "wgmma" or event.how is event.ref
            shapes = other_product and (other_product.left[0], other_product.right[1])
            wanted.add(shapes if plain else None)
        shape = allocation.shape if allocation is not None else None
        if len(wanted) != 1 or shape is None:
            return Trouble(node, message, reason=_SEVERAL)
        writer = Writer(self._module, shape)
        rows = self._dim(writer, product.a, 0, product.left[0])
        columns = self._dim(writer, product.b, 1, product.right[1])
        if rows is None or columns is None:
            return Trouble(node, message, reason=_SEVERAL)
        edit = Replace(self._module.span(shape), writer.code(f"({rows}, {columns})"))
        return Trouble(node, message, (edit,), certain=False)

    def _dim(
        self, writer: Writer, operand: ast.expr, axis: int, known: int | str | None
    ) -> str | None:
        """A dimension as the operand's allocation writes it, where that can be read there."""
        refs = self._accumulators.refs(operand)
        whole = all(e.how is e.ref for e in self._accumulators.events.get(operand, ()))
        if len(refs) == 1 and whole and refs[0].allocation is not None:
            shape = self._module.constants.origin(refs[0].allocation.shape)
            if isinstance(shape, ast.Tuple) and len(shape.elts) == 2:
                text = writer.moved(shape.elts[axis])
                if text is not None:
                    return text
        return str(known) if isinstance(known, int) else None


def _show(shape: Shape | None) -> str:
    dims = ["?" if not isinstance(d, int) else str(d) for d in shape or ()]
    return f"({', '.join(dims)})"
