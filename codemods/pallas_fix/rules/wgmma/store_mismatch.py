"""GPU002: stores that a WGMMA accumulator refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.edits import Code, Edit, Fix, InsertBefore, RemoveStatement, Replace, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.indexing import is_zero
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.wgmma.checks import rescue
from pallas_fix.rules.wgmma.operations import CREATORS
from pallas_fix.rules.wgmma.paths import Paths
from pallas_fix.rules.wgmma.spelling import exported, imported_alone
from pallas_fix.rules.wgmma.stores import MODULE, Store, Traffic
from pallas_fix.rules.wgmma.typed import broadcast, other_shape
from pallas_fix.versions import since

_PARTIAL = Reason(
    "partial-store",
    "a part of an accumulator cannot be stored: it lives in registers and is written whole. "
    "Either only these elements change and the others keep their value, or the others do not "
    "matter",
    "first reading: load it, put the new elements in with jnp.where(mask, new, old), and store "
    "the result whole; second reading: build the whole value and store it with acc[...] = value",
)
_TRANSPOSED = Reason(
    "store-transpose",
    "the stored value is transposed. Either the accumulator is to hold the transposed product, "
    "or the transposition is not meant for the store",
    "first reading: allocate plgpu.ACC with the dimensions swapped and swap the operands of "
    "plgpu.wgmma (b.T @ a.T); second reading: store the value without the transposition",
)
_BROADCAST = Reason(
    "store-broadcast",
    "the value has fewer elements than the accumulator. Either it is to be repeated along the "
    "missing dimension, or a dimension was lost on the way",
    "first reading: acc[...] = jax.lax.broadcast_in_dim(value, acc.shape, (dimension,)); second "
    "reading: keep the dimension where the value is made (keepdims=True, no integer index)",
)
_RESHAPED = Reason(
    "store-reshape",
    "the value was reshaped, from an array that does not have the shape of the accumulator either. "
    "Either its elements are to fill the accumulator in order, or the reshape is wrong",
    "first reading: reshape the value to acc.shape; second reading: make the value with acc.shape",
)
_SHAPE = Reason(
    "store-shape",
    "the shape of the value is not that of the accumulator. Either the value was cut or grown on "
    "the way, or the accumulator is allocated with the wrong shape",
    "first reading: store a value of acc.shape; second reading: change the shape in plgpu.ACC",
)
_IMPORTED = Reason(
    "store-import",
    "wgmma_accumulator_store is imported from a module that does not have it",
    "drop the name from the import, and write acc[...] = value",
)


class WgmmaStoreMismatch(Rule):
    """Values stored into WGMMA accumulators have their shape and dtype.

    ## What it does

    It repairs stores that jax is certain to refuse: another dtype gets `.astype(acc.dtype)`; a
    scalar becomes `jnp.full(acc.shape, v, acc.dtype)`, and zero `jnp.zeros(acc.shape,
    acc.dtype)`; `jnp.zeros`, `ones` and `full` of another shape or dtype get those of the
    accumulator; `acc[:] = v`, `acc[..., :] = v` and `acc[slice(None)] = v` become
    `acc[...] = v`; `plgpu.wgmma_accumulator_store(acc, v)`, which jax does not export, becomes
    `acc[...] = v`. A reshape between load and store with nothing but elementwise work by
    scalars after it is dropped: element for element the result is the same. That last fix is
    plausible only, because a reshape is sometimes written where a transposition is meant.

    ## Why it fails

    While tracing, since jax 0.9.1 (jax/_src/pallas/mosaic_gpu/primitives.py and core.py):
    `ValueError: Accumulator shape (64, 128) does not match value shape (128, 64)`,
    `ValueError: Accumulator dtype float32 does not match value dtype float16`,
    `NotImplementedError: Non-trivial indexing on WGMMAAbstractAccumulatorRef is not supported
    for stores.`, and `AttributeError: module 'jax.experimental.pallas.mosaic_gpu' has no
    attribute 'wgmma_accumulator_store'`.

    ## Example

    ```python
    # before
    acc[:] = 0
    plgpu.wgmma(acc, a, b)
    acc[...] = (acc[...] * scale).astype(jnp.float16)

    # after
    acc[...] = jnp.zeros(acc.shape, acc.dtype)
    plgpu.wgmma(acc, a, b)
    acc[...] = (acc[...] * scale).astype(jnp.float16).astype(acc.dtype)
    ```

    ## When it is not fixed

    Where the meaning is open, both readings are shown and none is written: a transposed value
    (`store-transpose`), a part of the accumulator (`partial-store`), a value that might be
    broadcast (`store-broadcast`), a reshape of something else (`store-reshape`), any other
    shape (`store-shape`). Where a shape is not known nothing is said: the assert of GPU001
    says it while tracing.

    ## What to do by hand

    Test the value before the store, and decide there what a misfit means:

    ```python
    def fits(acc, value):
        return value.shape == acc.shape and value.dtype == acc.dtype
    ```

    ## How it is verified

    The file before fails while tracing with the message above; the file after is traced,
    lowered and compiled for H100, which checks the shape, the dtype and the register layout of
    the stored value.
    """

    code = "GPU002"
    name = "wgmma-store-mismatch"
    triggers = ("wgmma",)
    messages = (
        r"Accumulator shape .* does not match value shape .*",
        r"Accumulator dtype .* does not match value dtype .*",
        r"Non-trivial indexing on WGMMAAbstractAccumulatorRef is not supported for stores",
        r"(?:has no attribute|cannot import name) '?wgmma_accumulator_store",
    )
    applies = since("0.9.1")

    def find(self, module: Facts) -> Iterator[Finding]:
        if MODULE not in module.text:
            return
        traffic = Traffic(module)
        paths = Paths(module.names, traffic.shapes)
        for store in traffic.stores():
            guarded = module.is_guarded(module.span(store.statement))
            if guarded or rescue(module.names, store.statement) is not None:
                continue
            found = self._called(module, store) if store.index is None else None
            found = found or self._index(module, traffic, store)
            found = found or self._value(module, traffic, paths, store)
            if found is not None:
                yield found
        yield from self._updates(module, traffic)

    def _called(self, module: Facts, store: Store) -> Finding | None:
        """`plgpu.wgmma_accumulator_store(acc, value)`."""
        call = store.statement.value if isinstance(store.statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not exported(module.names, call.func):
            return None
        message = "jax does not export wgmma_accumulator_store"
        span = module.span(store.statement)
        hole = {"value": module.span(store.value)}
        text = f"{module.source(store.base)}[...] = $value"
        edits: list[Edit] = [InsertBefore(span, Code(text, hole)), RemoveStatement(span)]
        if isinstance(call.func, ast.Name):
            imported = imported_alone(module.names, call.func)
            if imported is None:
                return self._finding(module, store.statement, message, reason=_IMPORTED)
            edits.append(RemoveStatement(module.span(imported)))
        return self._finding(module, store.statement, message, edits)

    def _index(self, module: Facts, traffic: Traffic, store: Store) -> Finding | None:
        if store.index is None or traffic.shapes.trivial(store.index, store.held.shape):
            return None
        assert isinstance(store.statement, ast.Assign)
        target = store.statement.targets[0]
        if store.whole:
            message = "this index selects all of the accumulator, but is not one that jax accepts"
            edit = Replace(module.span(target), Code(f"{module.source(store.base)}[...]"))
            return self._finding(module, store.statement, message, [edit])
        if not traffic.shapes.partial(store.index, store.held.shape):
            return None
        message = f"a part of the accumulator `{module.source(store.base)}` is stored"
        return self._finding(module, store.statement, message, reason=_PARTIAL)

    def _updates(self, module: Facts, traffic: Traffic) -> Iterator[Finding]:
        """`acc[:] += value`: only the index is looked at."""
        for node, _ in traffic.accumulators.nodes("update"):
            refs = traffic.accumulators.at(node, "update")
            if not isinstance(node, ast.AugAssign) or not refs:
                continue
            target = node.target
            if not isinstance(target, ast.Subscript) or module.is_guarded(module.span(node)):
                continue
            held = traffic.shapes.refs(refs, target.value)
            covers = traffic.shapes.covers(target.slice, held.shape)
            if covers and not traffic.shapes.trivial(target.slice, held.shape):
                text = f"{module.source(target.value)}[...]"
                message = "this index selects all of the accumulator, but jax does not accept it"
                edit = Replace(module.span(target), Code(text))
                yield self._finding(module, node, message, [edit])

    def _value(self, module: Facts, traffic: Traffic, paths: Paths, store: Store) -> Finding | None:
        if not store.misfits or not store.whole:
            return None
        acc = module.source(store.base)
        message = f"the accumulator `{acc}` is {store.held.show()}, the value {store.given.show()}"
        if not other_shape(store.held.shape, store.given.shape):
            edits = self._cast(module, paths, store, acc)
            return self._finding(module, store.statement, message, edits)
        if store.given.scalar:
            edit = self._filled(module, store, acc)
            return self._finding(module, store.statement, message, edit)
        made = paths.find(store.value, lambda e: self._creates(module, e))
        if isinstance(made, ast.Call) and _same_function(module, made, store.statement):
            edit = [self._recreated(module, made, acc)]
            return self._finding(module, store.statement, message, edit)
        dropped = paths.reshaped(store.value, store.held.shape)
        if dropped is not None:
            whole, inner = dropped
            code = Code("$array", {"array": module.span(inner)})
            edit = [Replace(module.span(whole), code)]
            return self._finding(module, store.statement, message, edit, certain=False)
        reason = self._open(paths, store)
        return self._finding(module, store.statement, message, reason=reason)

    def _open(self, paths: Paths, store: Store) -> Reason:
        """Why a misfit in shape is left to the reader."""
        if paths.transposed(store.value):
            return _TRANSPOSED
        if paths.find(store.value, paths.is_reshape) is not None:
            return _RESHAPED
        given, held = store.given.shape, store.held.shape
        if given is not None and held is not None and broadcast(given, held) == held:
            return _BROADCAST
        return _SHAPE

    def _creates(self, module: Facts, expr: ast.expr) -> bool:
        return isinstance(expr, ast.Call) and module.names.qualified(expr.func) in CREATORS

    def _recreated(self, module: Facts, call: ast.Call, acc: str) -> Edit:
        """`jnp.zeros`, `full` and so on with the shape and dtype of the accumulator."""
        text = f"{module.source(call.func)}({acc}.shape, {acc}.dtype)"
        parts = {}
        fill = argument(call, 1, "fill_value")
        if CREATORS[module.names.qualified(call.func) or ""] == 2 and fill is not None:
            parts["fill"] = module.span(fill)
            text = f"{module.source(call.func)}({acc}.shape, $fill, {acc}.dtype)"
        return Replace(module.span(call), Code(text, parts))

    def _filled(self, module: Facts, store: Store, acc: str) -> list[Edit]:
        """An array of the accumulator's shape for a scalar."""
        span = module.span(store.value)
        if is_zero(store.value, module.names):
            spelled = module.names.spell("jnp.zeros", at=store.statement)
            code = Code(f"{spelled.text}({acc}.shape, {acc}.dtype)")
        else:
            spelled = module.names.spell("jnp.full", at=store.statement)
            code = Code(f"{spelled.text}({acc}.shape, $value, {acc}.dtype)", {"value": span})
        return [Replace(span, code), *spelled.imports]

    def _cast(self, module: Facts, paths: Paths, store: Store, acc: str) -> list[Edit]:
        value = store.value
        made = value if self._creates(module, value) else None
        if isinstance(made, ast.Call) and self._exact(module, made):
            name = module.names.qualified(made.func) or ""
            given = argument(made, CREATORS[name], "dtype")
            if given is not None:
                return [Replace(module.span(given), Code(f"{acc}.dtype"))]
            return [SetKeyword(module.span(made), "dtype", Code(f"{acc}.dtype"))]
        atom = isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
        text = "$value" if atom else "($value)"
        code = Code(f"{text}.astype({acc}.dtype)", {"value": module.span(value)})
        return [Replace(module.span(value), code)]

    def _exact(self, module: Facts, call: ast.Call) -> bool:
        """True where the made array holds the same numbers in any dtype."""
        fill = argument(call, 1, "fill_value")
        if CREATORS[module.names.qualified(call.func) or ""] == 1:
            return True
        number = module.constants.fold(fill)
        return isinstance(number, int) or (isinstance(number, float) and number.is_integer())

    def _finding(
        self,
        module: Facts,
        node: ast.stmt,
        message: str,
        edits: Sequence[Edit] = (),
        reason: Reason | None = None,
        certain: bool = True,
    ) -> Finding:
        function = module.names.qualname(node)
        fix = Fix(tuple(edits), certain, functions=(function,)) if edits else None
        return Finding(self.code, module.span(node), message, fix, reason, function)


def _same_function(module: Facts, node: ast.AST, other: ast.AST) -> bool:
    """True where two nodes stand in the same function, so that both see the same names."""
    return module.names.scope(node) is module.names.scope(other)
