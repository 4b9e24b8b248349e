"""Writing `pltpu.ACC(index)(shape, dtype)` so that it means the same where it is put."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from pallas_fix.edits import AddImport, Code, Span
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation
from pallas_fix.facts.constants import DType
from pallas_fix.rules.base import Reason

ACC_DTYPES = frozenset({"float32", "int32"})
"""The dtypes of accumulators (check_accumulator_ref in jax/_src/pallas/mosaic/core.py)."""


Mxu = int | tuple[int, ...]
"""The MXU of an accumulator, or those of a list of accumulators."""


@dataclass(slots=True)
class Writer:
    """Collects the text, holes and imports of code that is put at one place."""

    module: Facts
    at: ast.AST
    parts: dict[str, Span] = field(default_factory=dict)
    imports: list[AddImport] = field(default_factory=list)

    def name(self, canonical: str) -> str:
        """A public name as the file writes it here."""
        spelled = self.module.names.spell(canonical, self.at)
        self.imports.extend(spelled.imports)
        return spelled.text

    def hole(self, node: ast.AST) -> str:
        """A hole for the code of a node."""
        key = f"p{len(self.parts)}"
        self.parts[key] = self.module.span(node)
        return f"${key}"

    def moved(self, expr: ast.expr) -> str | None:
        """An expression of another place, if its names mean the same here; else its value."""
        if _visible(self.module, expr, self.at):
            return self.hole(expr)
        return _literal(self.module, expr)

    def cast(self, statement: ast.AST | None, dtype: str) -> str:
        """The cast of a value: to what a statement stores it in as it is, else to `dtype`."""
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=target))]):
                return f".astype({target}.dtype)"
        return f".astype({self.name(f'jnp.{dtype}')})"

    def accumulator(self, allocation: Allocation, index: Mxu) -> str | Reason:
        """`pltpu.ACC(index)(shape, dtype)` for the shape and dtype of an allocation.

        For several MXUs: a list with one accumulator each.
        """
        if isinstance(index, tuple):
            return self._list(allocation, index)
        return self._one(allocation, str(index))

    def _list(self, allocation: Allocation, indices: tuple[int, ...]) -> str | Reason:
        if indices == tuple(range(len(indices))):
            mxu = self.module.names.fresh("mxu")
            text = self._one(allocation, mxu)
            return (
                text if isinstance(text, Reason) else f"[{text} for {mxu} in range({len(indices)})]"
            )
        texts = [self._one(allocation, str(one)) for one in indices]
        refused = next((text for text in texts if isinstance(text, Reason)), None)
        return refused or f"[{', '.join(map(str, texts))}]"

    def _one(self, allocation: Allocation, index: str) -> str | Reason:
        if allocation.shape is None or allocation.dtype is None:
            return Reason(
                "unknown-shape",
                "the shape or the dtype of the allocation is not written out",
                "write pltpu.ACC(mxu_index)(shape, jnp.float32) by hand",
            )
        shape = self.moved(allocation.shape)
        dtype: str | None
        if narrow(self.module, allocation) is not None:
            dtype = self.name("jnp.float32")
        else:
            dtype = self.moved(allocation.dtype)
        if shape is None or dtype is None:
            return Reason(
                "shape-not-visible",
                "the shape of the allocation uses names that the new place does not see",
                "pass the shape to the kernel (functools.partial), or define it at module level",
            )
        return f"{self.name('pltpu.ACC')}({index})({shape}, {dtype})"

    def code(self, text: str) -> Code:
        """The code with the holes met so far."""
        return Code(text, dict(self.parts))


def narrow(module: Facts, allocation: Allocation | None) -> str | None:
    """The dtype of an allocation where it is known and no accumulator can have it."""
    dtype = module.constants.dtype(allocation.dtype) if allocation is not None else None
    return dtype if dtype is not None and dtype not in ACC_DTYPES else None


def _visible(module: Facts, expr: ast.expr, at: ast.AST) -> bool:
    names = module.names
    for node in ast.walk(expr):
        if isinstance(node, ast.Name):
            there = names.lookup(node.id, names.scope(node))
            here = names.lookup(node.id, names.scope(at))
            if (there and there[0]) is not (here and here[0]):
                return False
    return True


def _literal(module: Facts, expr: ast.expr) -> str | None:
    value = module.constants.fold(expr)
    if isinstance(value, DType):
        return None
    if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
        return repr(value)
    return repr(value) if isinstance(value, int) else None
