"""GPU001: asserts that say early, and in the kernel's own words, that an accumulator misfits."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Fix, InsertAfter, InsertBefore, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.wgmma.checks import Checks, rescue
from pallas_fix.rules.wgmma.spelling import private_store
from pallas_fix.rules.wgmma.stores import MODULE, Load, Store, Traffic
from pallas_fix.rules.wgmma.valueflow import ValueFlow
from pallas_fix.versions import since

_WIDTH = 88
_RESCUE = Reason(
    "reshape-on-error",
    "the kernel waits for jax to refuse the value and stores another one then; an assert would "
    "change which exception is raised here",
    "test the shape before the store: `if value.shape != acc.shape: ...`, and drop the `try`",
)


class WgmmaShapeAssert(Rule):
    """Loads and stores of WGMMA accumulators carry an assert on the shape.

    ## What it does

    After a whole load that is bound to a name, `x = acc[...]` or
    `x = plgpu.wgmma_accumulator_load(acc)`, it inserts `assert x.shape == acc.shape`. Before a
    store, `acc[...] = value`, it inserts an assert on the shape and the dtype of the value,
    unless both are plainly those of the accumulator: `jnp.zeros_like(x)`, arithmetic of a
    loaded value with scalars, `jnp.full(acc.shape, v, acc.dtype)`. The asserts print both
    sides. Shapes and dtypes are static, so they cost nothing when the kernel runs.

    ## Why it fails

    A WGMMA accumulator takes only a value of exactly its shape and dtype:
    `ValueError: Accumulator shape (64, 128) does not match value shape (128, 64)` and
    `ValueError: Accumulator dtype float32 does not match value dtype float16`, while tracing,
    since jax 0.9.1 (jax/_src/pallas/mosaic_gpu/primitives.py). The message names neither the
    value nor the accumulator, and comes from inside jax.

    ## Example

    ```python
    # before
    product = plgpu.wgmma_accumulator_load(acc)
    acc[...] = rescale(product)

    # after
    product = plgpu.wgmma_accumulator_load(acc)
    assert product.shape == acc.shape, f"accumulator load: {product.shape} != {acc.shape}"
    value = rescale(product)
    assert value.shape == acc.shape and value.dtype == acc.dtype, (
        f"accumulator store: {value.shape} {value.dtype} into {acc.shape} {acc.dtype}"
    )
    acc[...] = value
    ```

    ## When it is not fixed

    A load gets its assert where the value can reach a store of the same accumulator; with
    `loads = "all"` under `[tool.pallas-fix]` every bound load gets one. Loads of a part, loads
    that no name is bound to, and refs that are not known to be accumulators get none. Where an
    assert or a guard says the same already, nothing is added. A `try/except` that stores
    another value when jax refuses the first is reported (`reshape-on-error`). A store that is
    known to misfit is the matter of GPU002.

    ## What to do by hand

    Paste a guard, and call it before each store:

    ```python
    def check_accumulator(acc, value):
        assert value.shape == acc.shape, f"{value.shape} != {acc.shape}"
        assert value.dtype == acc.dtype, f"{value.dtype} != {acc.dtype}"
    ```

    ## How it is verified

    The fix adds static asserts alone, so the kernel that is compiled is the same. The ladder
    traces, lowers and compiles it for H100; an assert that fires is a finding of its own.
    """

    code = "GPU001"
    name = "wgmma-shape-assert"
    triggers = ("wgmma",)
    messages = (r"accumulator (?:load|store): .*",)
    applies = since("0.9.1")

    def find(self, module: Facts) -> Iterator[Finding]:
        if MODULE not in module.text:
            return
        traffic = Traffic(module)
        checks = Checks(module.names, traffic.shapes)
        stores = list(traffic.stores())
        for load in traffic.loads():
            if module.is_guarded(module.span(load.statement)):
                continue
            checked = checks.after(load.statement, load.name, load.base, load.held)
            if not checked and self._wants(module, load, stores):
                yield self._load(module, load)
        rescued: set[ast.Try] = set()
        for store in stores:
            if self._needless(module, store):
                continue
            around = rescue(module.names, store.statement)
            if around is not None:
                if around not in rescued:
                    rescued.add(around)
                    yield self._finding(module, around, "a misfit is caught", reason=_RESCUE)
            elif not checks.before(store.statement, store.value, store.base, store.held):
                yield self._store(module, store)

    def _wants(self, module: Facts, load: Load, stores: list[Store]) -> bool:
        if self.options.loads == "all":
            return True
        same = [s for s in stores if _same_accumulator(module, load, s)]
        if not same:
            return False
        flow = ValueFlow(module.names)
        return any(flow.reaches(load.name, load.statement, s.value) for s in same)

    def _needless(self, module: Facts, store: Store) -> bool:
        """True where an assert would say nothing new, or the store is another rule's matter."""
        if module.is_guarded(module.span(store.statement)):
            return True
        exported = store.index is None and not private_store(module.names, store.statement)
        return exported or not store.whole or store.fits or store.misfits

    def _load(self, module: Facts, load: Load) -> Finding:
        name, acc = load.name, module.source(load.base)
        test = f"assert {name}.shape == {acc}.shape"
        text = f'f"accumulator load: {{{name}.shape}} != {{{acc}.shape}}"'
        code = _layout(module, load.statement, test, text)
        edit = InsertAfter(module.span(load.statement), Code(code))
        message = f"`{name}` is loaded from the accumulator `{acc}` and stored without a check"
        if self.options.loads == "all":
            message = f"`{name}` is loaded from the accumulator `{acc}` without a check"
        return self._finding(module, load.statement, message, (edit,))

    def _store(self, module: Facts, store: Store) -> Finding:
        acc, span = module.source(store.base), module.span(store.statement)
        value = store.value
        name = value.id if isinstance(value, ast.Name) else _fresh(module, store.statement)
        test = f"assert {name}.shape == {acc}.shape and {name}.dtype == {acc}.dtype"
        text = (
            f'f"accumulator store: {{{name}.shape}} {{{name}.dtype}}'
            f' into {{{acc}.shape}} {{{acc}.dtype}}"'
        )
        code = _layout(module, store.statement, test, text)
        edits: tuple[Edit, ...]
        if isinstance(value, ast.Name):
            edits = (InsertBefore(span, Code(code)),)
        else:
            hole = {"value": module.span(value)}
            edits = (
                InsertBefore(span, Code(f"{name} = $value\n{code}", hole)),
                Replace(module.span(value), Code(name)),
            )
        message = f"nothing says that the value fits the accumulator `{acc}`"
        return self._finding(module, store.statement, message, edits)

    def _finding(
        self,
        module: Facts,
        node: ast.stmt,
        message: str,
        edits: tuple[Edit, ...] = (),
        reason: Reason | None = None,
    ) -> Finding:
        function = module.names.qualname(node)
        fix = Fix(edits, certain=True, functions=(function,)) if edits else None
        return Finding(self.code, module.span(node), message, fix, reason, function)


def _same_accumulator(module: Facts, load: Load, store: Store) -> bool:
    if load.refs:
        return any(ref in store.refs for ref in load.refs)
    here = next(module.names.enclosing(load.statement), None)
    there = next(module.names.enclosing(store.statement), None)
    return here is there and ast.unparse(load.base) == ast.unparse(store.base)


def _layout(module: Facts, at: ast.stmt, test: str, text: str) -> str:
    """The assert on one line where it fits."""
    line = f"{test}, {text}"
    if module.span(at).column + len(line) <= _WIDTH:
        return line
    return f"{test}, (\n    {text}\n)"


def _fresh(module: Facts, at: ast.stmt) -> str:
    """A name that means nothing yet where the statement stands."""
    scope = module.names.scope(at)
    count = 1
    name = "value"
    while module.names.lookup(name, scope) is not None or hasattr(builtins, name):
        count += 1
        name = f"value_{count}"
    return name
