"""API011: `pl.dot`, which the products of jax have replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from packaging.version import Version

from pallas_fix.edits import (
    Code,
    Edit,
    RemoveArgument,
    RenameKeyword,
    Replace,
    SetKeyword,
)
from pallas_fix.facts import Facts
from pallas_fix.facts.backends import TRITON
from pallas_fix.rules.access.given import given, is_none
from pallas_fix.rules.access.handed import calls_of
from pallas_fix.rules.access.kept import comments_of_argument
from pallas_fix.rules.access.pinned import pinned
from pallas_fix.rules.access.summed import summed
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed(warns="0.10.2", fails="0.11.2")
_TRITON_HAS_DOT = Version("0.10.2")
_TRITON_HAS_PARAMETERS = Version("0.6.2")  # as triton.CompilerParams
_PARAMETERS = ("a", "b", "trans_a", "trans_b", "allow_tf32", "precision")


class PallasDot(Rule):
    """`pl.dot` is called, which the products of jax have replaced.

    ## What it does
    `pl.dot(a, b)` becomes `jnp.dot(a, b, preferred_element_type=jnp.float32)`, and with `trans_a`
    or `trans_b` the `jax.lax.dot_general` of the same contraction. `allow_tf32` becomes the
    `precision` that it stood for. In a Triton kernel it becomes `plt.dot`, which takes the same
    arguments, where all jax that the code must run on have it (0.10.2); the launch asks for Triton
    where jax does not choose it by itself (0.9.0 to 0.11.1).

    ## Why it fails
    `AttributeError: pl.dot was deprecated in JAX v0.11.0, and removed in JAX v0.12.0. Use
    jax.numpy.dot, jax.numpy.einsum or the @ operator instead` since jax 0.11.2.
    `pl.dot` was `jax.lax.dot_general` with a result in float32, or int32 for integers
    (jax 0.11.1, jax/_src/pallas/primitives.py).

    ## Example
    ```python
    o_ref[...] = pl.dot(x_ref[...], y_ref[...], trans_b=True)
    ```
    becomes
    ```python
    o_ref[...] = jax.lax.dot_general(
        x_ref[...], y_ref[...], dimension_numbers=(((1,), (1,)), ((), ())),
        preferred_element_type=jnp.float32)
    ```

    ## When it is not fixed
    The function goes where its calls cannot be seen, or its arguments are unpacked; the file speaks
    of small integers, and whether these are multiplied cannot be seen.

    ## What to do by hand
    Use `jax.lax.dot_general`, with `preferred_element_type=` the dtype that the sum is to have.

    ## How it is verified
    The kernel is traced, lowered, compiled and run after the fix; with `--before-python`, an
    interpreter whose jax still has the function, before it too.
    """

    code = "API011"
    name = "dot"
    triggers = ("pallas",)
    messages = (
        r"pl\.dot was deprecated in JAX",
        r"module 'jax\.experimental\.pallas' has no attribute 'dot'",
    )

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use of the function."""
        for node, _, call in uses(module, {"pl.dot"}):
            yield self.reported(
                module,
                call or node,
                f"`pl.dot` is {_CHANGE}: now a product of jax",
                _CHANGE,
                self._made(module, node, call),
                certain=call is not None,
            )

    def _made(
        self, module: Facts, node: ast.expr, call: ast.Call | None
    ) -> tuple[Edit, ...] | Reason:
        pin: tuple[Edit, ...] | None = ()
        if module.backends.of(node).name == TRITON:
            if self.options.oldest >= _TRITON_HAS_PARAMETERS:
                pin = pinned(module, node, self.options.versions)
            if self.options.oldest >= _TRITON_HAS_DOT and pin is not None:
                spelled = module.names.spell("triton.dot", node)
                return (Replace(module.span(node), Code(spelled.text)), *spelled.imports, *pin)
        made = _handed_on(module, node) if call is None else _called(module, call)
        return made if isinstance(made, Reason) else (*made, *(pin or ()))


def _called(module: Facts, call: ast.Call) -> tuple[Edit, ...] | Reason:
    arguments = given(call, *_PARAMETERS)
    if arguments is None or not {"a", "b"} <= arguments.keys():
        return _UNPACKED
    dtype = summed(module, arguments)
    return _DTYPE if dtype is None else tuple(_product(module, call, call.func, arguments, dtype))


def _handed_on(module: Facts, node: ast.expr) -> tuple[Edit, ...] | Reason:
    """A product of two arguments, where all calls that the function gets are seen to have two."""
    calls = calls_of(module, node)
    dtype = summed(module, {})
    if calls is None or dtype is None:
        return _HANDED_ON if calls is None else _DTYPE
    bound = calls[0] if calls and node in calls[0].args else None
    later = [call for call in calls if call is not bound]
    if any(call.keywords or len(call.args) > 2 for call in later):
        return _HANDED_ON
    if bound is None:
        spelled = module.names.spell("jnp.dot", node)
        kept = module.names.spell(f"jnp.{dtype}", node)
        text = f"lambda a, b: {spelled.text}(a, b, preferred_element_type={kept.text})"
        return (Replace(module.span(node), Code(text)), *spelled.imports, *kept.imports)
    arguments = {k.arg: k.value for k in bound.keywords if k.arg in _PARAMETERS[2:]}
    if len(arguments) < len(bound.keywords) or len(bound.args) > 1:
        return _HANDED_ON
    return tuple(_product(module, bound, node, arguments, dtype))


_HANDED_ON = Reason(
    "handed-on",
    "the function is handed on without being called",
    "hand on a function that calls jax.lax.dot_general",
)
_UNPACKED = Reason(
    "arguments-unpacked",
    "the arguments are unpacked, and which of them say what cannot be seen",
    "call jax.lax.dot_general by hand",
)
_DTYPE = Reason(
    "dtype-not-known",
    "the file speaks of small integers, whose products were summed in int32, and what is "
    "multiplied here is not known",
    "call jnp.dot with preferred_element_type=jnp.int32 for integers, else jnp.float32",
)


def _product(
    module: Facts,
    call: ast.Call,
    function: ast.expr,
    arguments: Mapping[str, ast.expr],
    result: str,
) -> Iterator[Edit]:
    span = module.span(call)
    turned = [_turned(arguments.get(name)) for name in ("trans_a", "trans_b")]
    plain = turned == ["", ""]
    spelled = module.names.spell("jnp.dot" if plain else "lax.dot_general", call)
    yield Replace(module.span(function), Code(spelled.text))
    yield from spelled.imports
    for name in ("trans_a", "trans_b", "allow_tf32"):
        if name in arguments:
            yield RemoveArgument(span, module.span(arguments[name]))
            yield from comments_of_argument(module, call, arguments[name])
    if not plain:
        yield from _contraction(module, call, arguments, turned)
    precision = arguments.get("precision")
    if precision is not None and precision in call.args:
        yield RemoveArgument(span, module.span(precision))
        code = Code("$precision", {"precision": module.span(precision)})
        yield SetKeyword(span, "precision", code)
    yield from _tf32(module, call, arguments.get("allow_tf32"))
    dtype = module.names.spell(f"jnp.{result}", call)
    yield SetKeyword(span, "preferred_element_type", Code(dtype.text))
    yield from dtype.imports


def _turned(value: ast.expr | None) -> str:
    """Whether an operand is transposed: empty for no, `True`, or `?` where it is not written."""
    if is_none(value):
        return ""
    if isinstance(value, ast.Constant):
        return "True" if value.value else ""
    return "?"


def _contraction(
    module: Facts, call: ast.Call, arguments: Mapping[str, ast.expr], turned: list[str]
) -> Iterator[Edit]:
    span = module.span(call)
    for old, new in (("a", "lhs"), ("b", "rhs")):
        if any(keyword.arg == old for keyword in call.keywords):
            yield RenameKeyword(span, old, new)
    parts = {}
    axes = []
    for name, plain, (yes, no) in zip(
        ("trans_a", "trans_b"), turned, ((0, 1), (1, 0)), strict=True
    ):
        if plain == "?":
            parts[name] = module.span(arguments[name])
            axes.append(f"{yes} if ${name} else {no}")
        else:
            axes.append(str(yes if plain else no))
    code = Code(f"((({axes[0]},), ({axes[1]},)), ((), ()))", parts)
    yield SetKeyword(span, "dimension_numbers", code)


def _tf32(module: Facts, call: ast.Call, allowed: ast.expr | None) -> Iterator[Edit]:
    if allowed is None or is_none(allowed):
        return
    spelled = module.names.spell("lax.Precision", call)
    yield from spelled.imports
    if isinstance(allowed, ast.Constant):
        code = Code(f"{spelled.text}.{'HIGH' if allowed.value else 'HIGHEST'}")
    else:
        text = f"{spelled.text}.HIGH if $allowed else {spelled.text}.HIGHEST"
        code = Code(text, {"allowed": module.span(allowed)})
    yield SetKeyword(module.span(call), "precision", code)
