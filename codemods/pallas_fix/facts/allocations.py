"""Expressions that create refs, and the lists in which launches take them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from pallas_fix.facts.constants import Constants
from pallas_fix.facts.names import Function, Names

_PLGPU_SPACES = {"plgpu.SMEM", "plgpu.GMEM", "plgpu.TMEM", "plgpu.REGS", "plgpu.ACC"}
_SPACES = _PLGPU_SPACES | {
    f"pltpu.{name}" for name in ("VMEM", "SMEM", "CMEM", "HBM", "VMEM_SHARED", "ANY", "ACC")
}
# What people write for `pltpu.ACC` by analogy with the other spaces; no jax has had these names
# (jax/experimental/pallas/tpu.py, jax/_src/pallas/mosaic/core.py).
_INVENTED = re.compile(
    r"(?:pltpu|pl)\.(?:(?:TPU)?MemorySpace\.)?"
    r"(?:(?:TPU_?|MXU_?)?(?:ACC|ACCUM|ACCUMULATORS?)(?:_?(?:MEM|MEMORY|SPACE|REF|[01]))*"
    r"|(?:TPU|MXU|Tpu|Mxu)?Acc(?:um|umulator)?(?:Memory|Space|Scratch)*)"
    r"|pltpu\.ACC\.[A-Z]\w*"
)
_REAL = frozenset({"pltpu.ACC", "pltpu.AccMemorySpace"})
_MUTATORS = frozenset(
    "append extend insert pop remove clear reverse sort update setdefault".split()
)


@dataclass(eq=False, slots=True)
class Allocation:
    """One ref to be created: `space(shape, dtype)`, or `pltpu.ACC(index)(shape, dtype)`.

    `node` is the whole expression, `space_node` the part that names the space. `index` is the
    MXU index of an accumulator. `init` is the value of `plgpu.ACC.init(value)`. Accumulators
    that are written wrongly (`pltpu.ACC(shape, dtype)`, `pltpu.MemorySpace.ACCUMULATOR(shape,
    dtype)`) count as `pltpu.ACC`.
    """

    node: ast.expr
    space: str
    space_node: ast.expr
    shape: ast.expr | None
    dtype: ast.expr | None
    index: ast.expr | None = None
    init: ast.expr | None = None


@dataclass(eq=False, slots=True)
class Slot:
    """One place of a list, tuple, dict or call that holds an allocation (or a nested list).

    `element` is the expression in that place, `container` the display or call around it.
    `shared` is true where one expression stands for several refs (`[x] * 2`).
    """

    element: ast.expr
    container: ast.expr
    key: str | None = None
    allocation: Allocation | None = None
    children: tuple[Slot, ...] | None = None
    shared: bool = False


class Allocations:
    """Reads allocations and containers of one module."""

    def __init__(self, names: Names, constants: Constants) -> None:
        self._names = names
        self._constants = constants

    def parse(self, expr: ast.expr) -> Allocation | None:
        """The allocation that an expression stands for (names are followed), or None."""
        node = self._constants.origin(expr)
        if not isinstance(node, ast.Call):
            return None
        func = node.func
        name = self._names.qualified(func)
        if is_accumulator(name):
            return self._accumulator(node)
        shape, dtype = argument(node, 0, "shape"), argument(node, 1, "dtype")
        if name in _SPACES:
            return Allocation(node, name, func, shape, dtype)
        if name == "plgpu.ACC.init" and node.args:
            return Allocation(node, "plgpu.ACC", func, None, None, None, node.args[0])
        inner = self._constants.origin(func)
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.MatMult):
            inner = inner.left
        if isinstance(inner, ast.Call) and is_accumulator(self._names.qualified(inner.func)):
            return Allocation(node, "pltpu.ACC", func, shape, dtype, mxu_argument(inner))
        return None

    def _accumulator(self, node: ast.Call) -> Allocation | None:
        """`pltpu.ACC` called with a shape, which it does not take; None for `pltpu.ACC(index)`."""
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        index = given.get("mxu_id", given.get("mxu_index"))
        rest = list(node.args)
        if any(isinstance(part, ast.Starred) for part in rest):
            return None
        numbers = [part for part in rest if isinstance(self._constants.fold(part), int)]
        if len(numbers) == 1 and len(rest) > 1 and (len(rest) == 3 or self._is_tuple(rest[1])):
            index = numbers[0]
            rest.remove(index)
        shape = given.get("shape", rest[0] if rest else None)
        dtype = given.get("dtype", rest[1] if len(rest) > 1 else None)
        if shape is None or len(rest) > 2 or (dtype is None and not self._is_tuple(shape)):
            return None
        return Allocation(node, "pltpu.ACC", node.func, shape, dtype, index)

    def _is_tuple(self, expr: ast.expr) -> bool:
        return isinstance(self._constants.origin(expr), ast.Tuple | ast.List)

    def space(self, expr: ast.expr | None) -> tuple[str, ast.expr | None] | None:
        """The memory space that `memory_space=expr` names, with the index of an accumulator."""
        node = self._constants.origin(expr)
        if isinstance(node, ast.Call) and is_accumulator(self._names.qualified(node.func)):
            return "pltpu.ACC", mxu_argument(node)
        name = self._names.qualified(node) if node is not None else None
        name = "pltpu.ACC" if is_accumulator(name) else name
        return (name, None) if name is not None else None

    def slots(self, expr: ast.expr | None) -> tuple[Slot, ...] | None:
        """The places of a container of allocations in order, or None where they are not certain.

        Lists, tuples, dicts, `dict(...)`, `[x] * n`, `a + b`, `*inner`, names of these, and
        calls of functions without arguments that return one.
        """
        return self._slots(expr, 0)

    def slot(self, element: ast.expr, container: ast.expr, key: str | None = None) -> Slot:
        """The slot of one element, with what it holds."""
        allocation = self.parse(element)
        children = None if allocation is not None else self._nested(element)
        return Slot(element, container, key, allocation, children)

    def _nested(self, element: ast.expr) -> tuple[Slot, ...] | None:
        node = self._constants.origin(element)
        nested = isinstance(node, ast.List | ast.Tuple | ast.Dict | ast.BinOp | ast.ListComp)
        return self._slots(element, 4) if nested else None

    def _slots(self, expr: ast.expr | None, depth: int) -> tuple[Slot, ...] | None:
        if expr is None or depth > 8 or self._mutated(expr):
            return None
        node = self._constants.origin(expr)
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                found: list[Slot] = []
                for element in elements:
                    if isinstance(element, ast.Starred):
                        inner = self._slots(element.value, depth + 1)
                        if inner is None:
                            return None
                        found.extend(inner)
                    else:
                        found.append(self.slot(element, node))
                return tuple(found)
            case ast.Dict(keys=keys, values=values):
                return self._dict(node, keys, values)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, second = self._slots(left, depth + 1), self._slots(right, depth + 1)
                return None if first is None or second is None else first + second
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                inner, count = self._slots(left, depth + 1), self._constants.fold(right)
                if inner is None or not isinstance(count, int) or not 0 <= count <= 64:
                    return None
                return tuple(
                    replace(slot, shared=count != 1) for _ in range(count) for slot in inner
                )
            case ast.ListComp(elt=element, generators=[generator]) if not generator.ifs:
                return self._repeated(element, node, generator)
            case ast.Call(func=func, args=[], keywords=[]):
                return self._slots(self.returned(self._names.definition(func)), depth + 1)
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                if any(k.arg is None for k in keywords):
                    return None
                return tuple(self.slot(k.value, node, k.arg) for k in keywords)
            case _:
                return None

    def _repeated(
        self, element: ast.expr, node: ast.expr, generator: ast.comprehension
    ) -> tuple[Slot, ...] | None:
        """The slots of `[x for _ in range(n)]`."""
        over = generator.iter
        plain = isinstance(over, ast.Call) and isinstance(over.func, ast.Name)
        if not isinstance(over, ast.Call) or not plain or len(over.args) != 1:
            return None
        count = self._constants.fold(over.args[0])
        if ast.unparse(over.func) != "range" or not isinstance(count, int) or count > 64:
            return None
        return tuple(replace(self.slot(element, node), shared=count != 1) for _ in range(count))

    def _dict(
        self, node: ast.Dict, keys: list[ast.expr | None], values: list[ast.expr]
    ) -> tuple[Slot, ...] | None:
        names = [self._constants.fold(key) if key is not None else None for key in keys]
        if not all(isinstance(name, str) for name in names):
            return None
        return tuple(
            self.slot(value, node, str(name)) for name, value in zip(names, values, strict=True)
        )

    def returned(self, function: Function | None) -> ast.expr | None:
        """What a function without parameters returns, where that is one expression."""
        if function is None or function.args.args or function.args.vararg:
            return None
        if isinstance(function, ast.Lambda):
            return function.body
        returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
        last = function.body[-1]
        return last.value if len(returns) == 1 and returns[0] is last else None

    def _mutated(self, expr: ast.expr) -> bool:
        """True where a name's list may have changed since it was assigned."""
        if not isinstance(expr, ast.Name):
            return False
        scope = self._names.lookup(expr.id, self._names.scope(expr))
        for node in ast.walk(scope[0].node) if scope else ():
            if isinstance(node, ast.Attribute) and node.attr in _MUTATORS:
                named = isinstance(node.value, ast.Name) and node.value.id == expr.id
                if named and isinstance(self._names.parent.get(node), ast.Call):
                    return True
            elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                written = not isinstance(node.ctx, ast.Load)
                if written and node.value.id == expr.id:
                    return True
        return False


def is_accumulator(name: str | None) -> bool:
    """True for `pltpu.ACC`, and for the names that people invent for it (`is_invented`)."""
    return name == "pltpu.ACC" or is_invented(name)


def is_invented(name: str | None) -> bool:
    """True for a canonical name of an accumulator space that no jax has ever had."""
    return name is not None and name not in _REAL and _INVENTED.fullmatch(name) is not None


def mxu_argument(call: ast.Call) -> ast.expr | None:
    """The MXU index in `pltpu.ACC(index)`, also under the name that other functions give it."""
    for keyword in ("mxu_id", "mxu_index"):
        found = argument(call, 0, keyword)
        if found is not None:
            return found
    return None


def argument(call: ast.Call, position: int | None, name: str) -> ast.expr | None:
    """An argument of a call by position or keyword; None where it is absent or starred."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is None or position >= len(call.args):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return None
    return call.args[position]
