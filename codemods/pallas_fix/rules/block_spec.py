"""API021: block specs with their arguments in the old order, or with an indexing mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, NameArgument, RemoveArgument, Replace, Span
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_SPECS = frozenset({"pl.BlockSpec", "plgpu.BlockSpec", "plgpu.GPUBlockSpec"})
_ORDER = changed("0.4.31", warns="0.4.31", fails="0.4.35")
_BLOCKED = changed("0.4.31", fails="0.6.1")
_ELEMENT = changed("0.6.1", fails="0.6.1")


class BlockSpec(Rule):
    """A block spec has its index map before its block shape, or an indexing mode.

    ## What it does
    - `pl.BlockSpec(index_map, block_shape)` becomes `pl.BlockSpec(block_shape, index_map)`, and
      `pl.BlockSpec(index_map)` becomes `pl.BlockSpec(index_map=index_map)`;
    - `indexing_mode=pl.Blocked()`, which is the default, goes;
    - with `indexing_mode=pl.Unblocked()`, each dimension of the block that has a size becomes
      `pl.Element(size)`, with its padding if there is any.

    ## Why it fails
    `TypeError: 'function' object is not iterable` (until jax 0.4.35: `object of type 'function' has
    no len()`); `AttributeError: module 'jax.experimental.pallas' has no attribute 'Unblocked'` and
    `Blocked.__init__() missing 1 required positional argument: 'block_size'` since 0.6.1
    (jax/_src/pallas/core.py).

    ## Example
    ```python
    pl.BlockSpec(lambda i: (i * 8, 0), (8, 128), indexing_mode=pl.Unblocked())
    ```
    becomes
    ```python
    pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (i * 8, 0))
    ```

    ## When it is not fixed
    Which argument is the index map cannot be seen (then the order is taken to be right, unless the
    names say otherwise); the indexing mode or its padding is not written out.

    ## What to do by hand
    Put the block shape first; give `pl.Element(size, (low, high))` for a dimension that is padded.

    ## How it is verified
    The kernel is traced, lowered, compiled and run after the fix; with `--before-python`, an
    interpreter whose jax still takes the old form, before it too.
    """

    code = "API021"
    name = "block-spec"
    triggers = ("BlockSpec",)
    messages = (
        r"'function' object is not iterable",
        r"object of type 'function' has no len\(\)",
        r"Blocked\.__init__\(\) missing 1 required positional argument: 'block_size'",
        r"BlockSpec\.__init__\(\) got an unexpected keyword argument 'indexing_mode'",
        r"has no attribute '(?:Unblocked|unblocked|IndexingMode)'",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield the findings about each block spec."""
        for call in module.names.calls:
            if module.names.public(call.func) not in _SPECS:
                continue
            if any(isinstance(value, ast.Starred) for value in call.args):
                continue
            if module.is_guarded(module.span(call)):
                continue
            order = _order(module, call)
            mode = next((k.value for k in call.keywords if k.arg == "indexing_mode"), None)
            if order is not None:
                # The mode waits until the shape is in its place.
                edits, certain = order
                message = f"the index map before the block shape is {_ORDER}: it is second now"
                yield self.reported(module, call, message, _ORDER, edits, certain=certain)
            elif mode is not None:
                yield self._mode(module, call, mode)

    def _mode(self, module: Facts, call: ast.Call, mode: ast.expr) -> Finding:
        origin = module.constants.origin(mode) or mode
        made = origin.func if isinstance(origin, ast.Call) else origin
        name = module.names.public(made)
        drop = RemoveArgument(module.span(call), module.span(mode))
        if name in ("pl.Blocked", "pl.blocked"):
            message = f"`indexing_mode=` is {_BLOCKED}: blocks are the default"
            return self.reported(module, call, message, _BLOCKED, [drop])
        message = f"`indexing_mode=` is {_ELEMENT}: now `pl.Element` in the block shape"
        padding = _padding(origin)
        shape = _shape(call)
        if name not in ("pl.Unblocked", "pl.unblocked") or shape is None or padding is _HIDDEN:
            return self.reported(module, call, message, _ELEMENT, _MODE)
        edits = _elements(module, call, shape, padding)
        if edits is None:
            return self.reported(module, call, message, _ELEMENT, _MODE)
        return self.reported(module, call, message, _ELEMENT, [*edits, drop])


_MODE = Reason(
    "mode-not-written-out",
    "the indexing mode, its padding, or the block shape is not written out",
    "give pl.Element(size, (low, high)) for each dimension of the block shape",
)
_HIDDEN = ast.Constant(Ellipsis)
"""Stands for a padding that is not written out."""


def _order(module: Facts, call: ast.Call) -> tuple[list[Edit], bool] | None:
    """What puts the arguments in order, and whether that is certain; None where they are."""
    if not call.args:
        return None
    first = call.args[0]
    span = module.span(call)
    named = {keyword.arg for keyword in call.keywords}
    if len(call.args) == 1:
        if _is_map(module, first) and "index_map" not in named:
            return [NameArgument(span, module.span(first), "index_map")], True
        return None
    second = call.args[1]
    known = _is_map(module, first) or (_is_shape(module, second) and not _is_shape(module, first))
    if _is_map(module, second) or (_is_shape(module, first) and not _is_map(module, first)):
        return None
    guessed = _sounds(first, "map", "index") and _sounds(second, "shape", "block")
    if not (known or guessed):
        return None
    places = module.span(first), module.span(second)
    edits: list[Edit] = [
        Replace(places[0], Code("$other", {"other": places[1]})),
        Replace(places[1], Code("$other", {"other": places[0]})),
    ]
    if len(call.args) > 2:
        # The third one was the memory space, and the fourth the indexing mode.
        words = ("memory_space", "indexing_mode")
        edits += (
            NameArgument(span, module.span(value), word)
            for value, word in zip(call.args[2:], words, strict=False)
        )
    return edits, known


def _is_map(module: Facts, value: ast.expr) -> bool:
    """True for a function: a lambda, a `def` of the file, or a partial application."""
    origin = module.constants.origin(value) or value
    if isinstance(origin, ast.Lambda) or module.names.definition(origin) is not None:
        return True
    return (
        isinstance(origin, ast.Call) and module.names.qualified(origin.func) == "functools.partial"
    )


def _is_shape(module: Facts, value: ast.expr) -> bool:
    origin = module.constants.origin(value) or value
    if isinstance(origin, ast.BinOp):
        return _is_shape(module, origin.left) or _is_shape(module, origin.right)
    return isinstance(origin, ast.Tuple | ast.List)


def _sounds(value: ast.expr, *words: str) -> bool:
    name = getattr(value, "id", getattr(value, "attr", ""))
    return any(word in name.lower() for word in words)


def _shape(call: ast.Call) -> ast.expr | None:
    named = next((k.value for k in call.keywords if k.arg == "block_shape"), None)
    return call.args[0] if call.args else named


def _padding(mode: ast.expr) -> ast.expr | None:
    """The padding of `pl.Unblocked(padding)`; `_HIDDEN` where it is not a tuple of pairs."""
    if not isinstance(mode, ast.Call) or not (mode.args or mode.keywords):
        return None
    value = mode.args[0] if mode.args else mode.keywords[0].value
    if isinstance(value, ast.Constant) and value.value is None:
        return None
    written = isinstance(value, ast.Tuple | ast.List) and not any(
        isinstance(pair, ast.Starred) for pair in value.elts
    )
    return value if written else _HIDDEN


def _elements(
    module: Facts, call: ast.Call, shape: ast.expr, padding: ast.expr | None
) -> list[Edit] | None:
    """What makes elements of the dimensions of a block shape that have a size."""
    element = module.names.spell("pl.Element", call)
    pairs = padding.elts if isinstance(padding, ast.Tuple | ast.List) else None
    if isinstance(shape, ast.Tuple | ast.List) and not any(
        isinstance(item, ast.Starred) for item in shape.elts
    ):
        if pairs is not None and len(pairs) != len(shape.elts):
            return None
        edits: list[Edit] = [*element.imports]
        for number, item in enumerate(shape.elts):
            if isinstance(item, ast.Constant) and item.value is None:
                continue
            parts: dict[str, Span] = {"size": module.span(item)}
            text = f"{element.text}($size)"
            if pairs is not None:
                parts["padding"] = module.span(pairs[number])
                text = f"{element.text}($size, $padding)"
            edits.append(Replace(module.span(item), Code(text, parts)))
        return edits
    if pairs is not None:
        return None
    text = f"tuple(None if size is None else {element.text}(size) for size in $shape)"
    code = Code(text, {"shape": module.span(shape)})
    return [Replace(module.span(shape), code), *element.imports]
