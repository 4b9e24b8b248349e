"""API010: `pl.load`, `pl.store` and `pl.swap`, which indexing has replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from pallas_fix.edits import Code, Edit, RemoveArgument, RenameKeyword, Replace, ReplaceStatement
from pallas_fix.facts import Facts
from pallas_fix.facts.backends import MOSAIC_GPU, TPU, TRITON, Backend
from pallas_fix.rules.access.given import given, has_order, is_none
from pallas_fix.rules.access.handed import calls_of
from pallas_fix.rules.access.indexes import bracketed, may_overrun
from pallas_fix.rules.access.kept import kept_comments
from pallas_fix.rules.access.masked import chosen, may_be_none, with_at
from pallas_fix.rules.access.pinned import HIDDEN_LAUNCH, pinned
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import Change, changed

_PLAIN = {
    "load": changed(warns="0.7.1", fails="0.9.0"),
    "store": changed(warns="0.7.1", fails="0.9.0"),
    "swap": changed("0.7.1", warns="0.8.1", fails="0.9.0"),
}
_AS_CALL = changed("0.7.1", warns="0.7.1", fails="0.9.0")
_CALLED = {"load": "jax.ref.get", "store": "jax.ref.set", "swap": "jax.ref.swap"}
_NAMES = {"pl.load": "load", "pl.store": "store", "pl.swap": "swap"}
_PARAMETERS = {
    "load": ("x_ref_or_view", "idx"),
    "store": ("x_ref_or_view", "idx", "val"),
    "swap": ("x_ref_or_view", "idx", "val"),
}
_ONLY_TRITON = frozenset({"cache_modifier", "eviction_policy", "volatile"})
_NOW = {"load": "`ref[idx]`", "store": "`ref[idx] = value`", "swap": "`jax.ref.swap`"}


class LoadStore(Rule):
    """`pl.load`, `pl.store` or `pl.swap` is called, which indexing has replaced.

    ## What it does
    - `pl.load(ref, idx)` becomes `ref[idx]`, and the statement `pl.store(ref, idx, value)` becomes
      `ref[idx] = value`; where a call must stand, `jax.ref.set(ref, idx, value)`;
    - with a mask, in a Triton kernel: `plt.load(ref.at[idx], mask=...)`, `plt.store(...)`; in a TPU
      kernel `jnp.where(mask, ref[idx], other)` and `pltpu.store(ref.at[idx], value, mask=...)`;
    - `pl.swap(ref, idx, value)` becomes `jax.ref.swap(ref, idx, value)`;
    - a function that is handed on becomes `jax.ref.get`, `set` or `swap`, where all of its calls
      are seen and have no mask.

    For a jax on which `pl.pallas_call` does not choose Triton by itself (0.9.0 to 0.11.1), the
    launch of a Triton kernel gets `compiler_params=plt.CompilerParams()`.

    ## Why it fails
    `AttributeError: module 'jax.experimental.pallas' has no attribute 'load'` since jax 0.9.0, a
    DeprecationWarning since 0.7.1 (`swap`: 0.8.1).

    ## Example
    ```python
    x = pl.load(x_ref, (slice(None), pl.ds(start, 128)))
    pl.store(o_ref, (0, slice(None)), x)
    ```
    becomes
    ```python
    x = x_ref[:, pl.ds(start, 128)]
    o_ref[0, :] = x
    ```

    ## When it is not fixed
    There is a mask, and which backend the kernel is for cannot be seen; the backend has no masked
    access (Mosaic GPU); the mask may be None, on TPU; arguments are unpacked, or the function goes
    where its calls cannot be seen.

    ## What to do by hand
    Index the ref; for a mask, use `load` and `store` of the backend's module.

    ## How it is verified
    The kernel is traced, lowered, compiled and run after the fix; with `--before-python`, an
    interpreter whose jax still has the function, before it too. A masked load on TPU is plausible
    only: lanes without the mask held anything before, and hold 0 or `other` then.
    """

    code = "API010"
    name = "load-store"
    triggers = ("pallas",)
    messages = (
        r"module 'jax\.experimental\.pallas' has no attribute '(?:load|store|swap)'",
        r"cannot import name '(?:load|store|swap)' from 'jax\.experimental\.pallas'",
        r"pl\.(?:load|store|swap) is deprecated",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use of one of the functions."""
        for node, name, call in uses(module, _NAMES):
            yield self._finding(module, call or node, _NAMES[name], call)

    def _finding(self, module: Facts, place: ast.expr, kind: str, call: ast.Call | None) -> Finding:
        made = _handed_on(module, kind, place)
        if call is not None:
            made = self._repair(module, kind, call)
        change = made.change or _PLAIN[kind]
        return self.reported(
            module,
            place,
            f"`pl.{kind}` is {_PLAIN[kind]}: now {made.now or _NOW[kind]}",
            change,
            made.edits or made.reason,
            certain=made.certain,
        )

    def _repair(self, module: Facts, kind: str, call: ast.Call) -> _Made:
        unpacked = any(keyword.arg is None for keyword in call.keywords)
        written = ast.Call(call.func, call.args, [k for k in call.keywords if k.arg is not None])
        arguments = given(written, *_PARAMETERS[kind])
        if arguments is None:
            return _Made(None, _UNPACKED)
        arguments = {_RENAMED.get(name, name): value for name, value in arguments.items()}
        if not {"ref", "idx"} <= arguments.keys() or (kind != "load" and "val" not in arguments):
            return _Made(None, _UNPACKED)
        extra = {name: arguments[name] for name in arguments.keys() - {"ref", "idx", "val"}}
        special = {name for name, value in extra.items() if not _is_default(name, value)}
        if special - _ONLY_TRITON - {"mask", "other"}:
            return _Made(None, _UNPACKED)
        if unpacked and (kind == "swap" or module.backends.of(call).name != TRITON):
            return _Made(None, _MAYBE_MASK)
        if kind == "swap":
            return _Made(None, _MASKED_SWAP) if special else _swapped(module, call, arguments)
        # Without a mask `other` means nothing.
        if unpacked or special - {"other"}:
            return self._by_backend(module, kind, call, arguments, special)
        return _plain(module, kind, call, arguments)

    def _by_backend(
        self,
        module: Facts,
        kind: str,
        call: ast.Call,
        arguments: Mapping[str, ast.expr],
        special: set[str],
    ) -> _Made:
        backend = module.backends.of(call)
        hints = sorted(arguments.keys() & _ONLY_TRITON)
        if backend.name == TRITON or (backend.name is None and special & _ONLY_TRITON):
            pin = pinned(module, call, self.options.versions)
            if pin is None:
                return _Made(None, HIDDEN_LAUNCH)
            edits = (*with_at(module, f"triton.{kind}", call, arguments), *pin)
            masked = "mask" in special or any(keyword.arg is None for keyword in call.keywords)
            sure = not masked or not may_overrun(module, arguments["idx"])
            return _Made(edits, None, f"`plt.{kind}`", _AS_CALL, certain=sure)
        if backend.name != TPU:
            return _Made(None, _no_mask(backend))
        # The lowering for TPU has always passed over the hints.
        if "mask" not in special:
            return _plain(module, kind, call, arguments)
        if kind == "store":
            edits = tuple(with_at(module, "pltpu.store", call, arguments, hints))
            return _Made(edits, None, "`pltpu.store`", _AS_CALL)
        if has_order(arguments["ref"], arguments["idx"]):
            return _Made(None, _IN_ORDER)
        if may_be_none(module, arguments["mask"]):
            return _Made(None, _MASK_OR_NONE)
        edits = tuple(chosen(module, call, arguments))
        return _Made(edits, None, "`jnp.where(mask, ref[idx], other)`", certain=False)


class _Made:
    """What becomes of one call: edits, or the reason why there are none."""

    def __init__(
        self,
        edits: tuple[Edit, ...] | None,
        reason: Reason | None,
        now: str = "",
        change: Change | None = None,
        certain: bool = True,
    ) -> None:
        self.edits, self.reason, self.now = edits, reason, now
        self.change, self.certain = change, certain


_RENAMED = {"x_ref_or_view": "ref"}
_KEYWORDS = {"x_ref_or_view": "ref", "val": "value"}
_HANDED_ON = Reason(
    "handed-on",
    "the function is handed on without being called",
    "hand on a function that indexes: lambda ref, idx: ref[idx]",
)
_UNPACKED = Reason(
    "arguments-unpacked",
    "the arguments are unpacked, and which of them is the index cannot be seen",
    "write ref[idx] by hand",
)
_MAYBE_MASK = Reason(
    "mask-unpacked",
    "keywords are unpacked, which may hold a mask, and how that is written depends on the backend",
    "write ref[idx], or call load or store of the module of the backend with ref.at[idx]",
)
_MASKED_SWAP = Reason(
    "masked-swap",
    "a swap with a mask has no successor",
    "load and store with the mask, or use an atomic of jax.experimental.pallas.triton",
)


_IN_ORDER = Reason(
    "index-before-mask",
    "the index does something that the mask may need, and jnp.where takes the mask first",
    "give the index a name above, then write jnp.where(mask, ref[idx], other)",
)
_MASK_OR_NONE = Reason(
    "mask-or-none",
    "the mask may be None, and jnp.where takes none",
    "write ref[idx] where there is no mask, and jnp.where(mask, ref[idx], other) where there is",
)


def _no_mask(backend: Backend) -> Reason:
    if backend.name == MOSAIC_GPU:
        return Reason(
            "no-masks",
            f"Mosaic GPU has no access with a mask or a cache hint, and {backend.why}",
            "load all with plgpu.load(ref.at[idx]), and choose with jnp.where",
        )
    return Reason(
        "backend-not-known",
        f"how a mask is written depends on the backend, and {backend.why}",
        backend.decides,
    )


def _is_default(name: str, value: ast.expr) -> bool:
    no = isinstance(value, ast.Constant) and value.value is False and name == "volatile"
    return is_none(value) or no


def _plain(module: Facts, kind: str, call: ast.Call, arguments: Mapping[str, ast.expr]) -> _Made:
    inside, parts = bracketed(module, arguments["idx"])
    parts["ref"] = module.span(arguments["ref"])
    if kind == "load":
        comments = kept_comments(module, call, parts.values())
        code = Code(f"$ref[{inside}]", parts)
        return _Made((Replace(module.span(call), code), *comments), None)
    parts["val"] = module.span(arguments["val"])
    statement = module.names.parent[call]
    if isinstance(statement, ast.Expr) and not has_order(arguments["ref"], arguments["idx"]):
        code = Code(f"$ref[{inside}] = $val", parts)
        comments = kept_comments(module, call, parts.values())
        return _Made((ReplaceStatement(module.span(statement), code), *comments), None)
    spelled = module.names.spell("jax.ref.set", call)
    parts = {name: module.span(arguments[name]) for name in ("ref", "idx", "val")}
    code = Code(f"{spelled.text}($ref, $idx, $val)", parts)
    edits: tuple[Edit, ...] = (
        Replace(module.span(call), code),
        *spelled.imports,
        *kept_comments(module, call, parts.values()),
    )
    return _Made(edits, None, "`jax.ref.set`", _AS_CALL)


def _swapped(module: Facts, call: ast.Call, arguments: Mapping[str, ast.expr]) -> _Made:
    spelled = module.names.spell("jax.ref.swap", call)
    span = module.span(call)
    edits: list[Edit] = [Replace(module.span(call.func), Code(spelled.text)), *spelled.imports]
    for name, value in arguments.items():
        if name not in ("ref", "idx", "val"):
            edits.append(RemoveArgument(span, module.span(value)))
    words = [str(keyword.arg) for keyword in call.keywords if keyword.arg in _KEYWORDS]
    edits += (RenameKeyword(span, word, _KEYWORDS[word]) for word in words)
    return _Made(tuple(edits), None)


def _handed_on(module: Facts, kind: str, node: ast.expr) -> _Made:
    """A function that indexes, where all calls that it gets are seen, and have no mask."""
    calls = calls_of(module, node)
    words = {keyword.arg for call in calls or () for keyword in call.keywords}
    if calls is None or words - {"idx"}:
        return _Made(None, _HANDED_ON)
    spelled = module.names.spell(_CALLED[kind], node)
    edits: tuple[Edit, ...] = (Replace(module.span(node), Code(spelled.text)), *spelled.imports)
    change = _PLAIN["swap"] if kind == "swap" else _AS_CALL
    return _Made(edits, None, f"`{_CALLED[kind]}`", change, certain=False)
