"""API021: block specs with their arguments in the old order, or with an indexing mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import RemoveArgument, RemoveStatement
from pallas_fix.facts import Facts
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.parameters.dicts import same
from pallas_fix.rules.specs.elements import BLOCKED, UNBLOCKED, elements
from pallas_fix.rules.specs.order import Spec
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
    - `indexing_mode=pl.Blocked()`, which is the default, goes, and so does a variable that holds a
      mode and has no other use;
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
            name, arguments = module.names.public(call.func), call.args
            if name == "functools.partial" and call.args:
                name, arguments = module.names.public(call.args[0]), call.args[1:]
            if name not in _SPECS or any(isinstance(value, ast.Starred) for value in arguments):
                continue
            if module.is_guarded(module.span(call)):
                continue
            spec = Spec(module, call, tuple(arguments))
            order, mode = spec.ordered(), spec.mode
            if order is not None:
                # The mode waits until the shape is in its place.
                edits, certain = order
                message = f"the index map before the block shape is {_ORDER}: it is second now"
                yield self.reported(module, call, message, _ORDER, edits, certain=certain)
            elif mode is not None:
                yield self._mode(module, spec, mode)
        yield from self._left(module)

    def _mode(self, module: Facts, spec: Spec, mode: ast.expr) -> Finding:
        call = spec.call
        origin = module.constants.origin(mode) or mode
        made = origin.func if isinstance(origin, ast.Call) else origin
        name = module.names.public(made)
        drop = RemoveArgument(module.span(call), module.span(mode))
        if name in BLOCKED:
            message = f"`indexing_mode=` is {_BLOCKED}: blocks are the default"
            return self.reported(module, call, message, _BLOCKED, [drop])
        message = f"`indexing_mode=` is {_ELEMENT}: now `pl.Element` in the block shape"
        edits = elements(spec, origin) if name in UNBLOCKED else None
        if edits is None:
            return self.reported(module, call, message, _ELEMENT, _MODE)
        return self.reported(module, call, message, _ELEMENT, [*edits, drop])

    def _left(self, module: Facts) -> Iterator[Finding]:
        """Variables that hold a mode, and that nothing needs any more."""
        for node in module.index.all(ast.Assign) if "locked" in module.text else ():
            match node:
                case ast.Assign(targets=[ast.Name() as target], value=value):
                    made = value.func if isinstance(value, ast.Call) else value
                    name = module.names.public(made)
                    sized = isinstance(value, ast.Call) and bool(value.args or value.keywords)
                    if name not in UNBLOCKED and (name not in BLOCKED or sized):
                        continue  # pl.Blocked(size) is what jax has now
                    if module.is_guarded(module.span(node)) or _is_used(module, target):
                        continue
                    message = f"an indexing mode is {_BLOCKED}, and nothing needs it here"
                    gone = [RemoveStatement(module.span(node))]
                    yield self.reported(module, node, message, _BLOCKED, gone)


_MODE = Reason(
    "mode-not-written-out",
    "the indexing mode, its padding, or the block shape is not written out",
    "give pl.Element(size, (low, high)) for each dimension of the block shape",
)


def _is_used(module: Facts, target: ast.Name) -> bool:
    """True if anything reads a variable, or may do so from another file."""
    exported = module.names.at_import(target) and not target.id.startswith("_")
    listed = exported and module.names.lookup("__all__", module.names.scope(target)) is not None
    return listed or any(
        same(module, node, target) for node in module.index.names.get(target.id, ())
    )
