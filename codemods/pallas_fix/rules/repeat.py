"""API012: `pltpu.repeat`, which concatenation has replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Replace
from pallas_fix.facts import Facts
from pallas_fix.rules.access.given import given
from pallas_fix.rules.access.handed import calls_of
from pallas_fix.rules.access.kept import kept_comments
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed(warns="0.9.1", fails="0.10.2")


class Repeat(Rule):
    """`pltpu.repeat` is called, which concatenation has replaced.

    ## What it does
    `pltpu.repeat(x, n, axis)` becomes `jnp.concatenate([x] * n, axis=axis)`. On the chip it put
    whole copies one behind the other, as `jnp.tile` does: it was never `jnp.repeat`. Where the
    function is bound to arguments or to a name, a lambda with the same parameters takes its place.

    ## Why it fails
    `AttributeError: module 'jax.experimental.pallas.tpu' has no attribute 'repeat'` since jax
    0.10.2, a DeprecationWarning ("pltpu.repeat is deprecated, use jnp.tile instead.") since
    0.9.1.

    ## Example
    ```python
    o_ref[...] = pltpu.repeat(x_ref[...], 2, axis=1)
    ```
    becomes
    ```python
    o_ref[...] = jnp.concatenate([x_ref[...]] * 2, axis=1)
    ```

    ## When it is not fixed
    The function goes where its calls cannot be seen, or its arguments are unpacked.

    ## What to do by hand
    Use `jnp.tile`, with the number of copies along each axis of the array.

    ## How it is verified
    The kernel is traced, lowered, compiled and run after the fix. Its numbers before cannot be
    compared on a CPU: there, an old jax repeated each element instead
    (jax 0.9.0, jax/_src/pallas/mosaic/primitives.py).
    """

    code = "API012"
    name = "repeat"
    triggers = ("pallas",)
    messages = (
        r"module 'jax\.experimental\.pallas\.tpu' has no attribute 'repeat'",
        r"cannot import name 'repeat' from 'jax\.experimental\.pallas\.tpu'",
        r"pltpu\.repeat is deprecated",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use of the function."""
        for node, _, call in uses(module, {"pltpu.repeat"}):
            edits: tuple[Edit, ...] = ()
            arguments = given(call, "x", "repeats", "axis") if call is not None else None
            if call is not None and arguments is not None and len(arguments) == 3:
                spelled = module.names.spell("jnp.concatenate", call)
                parts = {name: module.span(value) for name, value in arguments.items()}
                code = Code(f"{spelled.text}([$x] * $repeats, axis=$axis)", parts)
                comments = kept_comments(module, call, parts.values())
                edits = (Replace(module.span(call), code), *spelled.imports, *comments)
            elif call is None and _goes_on(module, node):
                edits = _as_lambda(module, node)
            yield self.reported(
                module,
                call or node,
                f"`pltpu.repeat` is {_CHANGE}: now `jnp.concatenate`",
                _CHANGE,
                edits or _HANDED_ON,
            )


_HANDED_ON = Reason(
    "not-called-plainly",
    "the function is handed on, or its arguments are unpacked",
    "call jnp.tile, with the number of copies along each axis of the array",
)


def _goes_on(module: Facts, node: ast.expr) -> bool:
    """True where any function with the same parameters does."""
    parent = module.names.parent[node]
    bound = isinstance(parent, ast.Call) and module.names.qualified(parent.func)
    return bound == "functools.partial" or calls_of(module, node) is not None


def _as_lambda(module: Facts, node: ast.expr) -> tuple[Edit, ...]:
    spelled = module.names.spell("jnp.concatenate", node)
    text = f"lambda x, repeats, axis: {spelled.text}([x] * repeats, axis=axis)"
    return (Replace(module.span(node), Code(text)), *spelled.imports)
