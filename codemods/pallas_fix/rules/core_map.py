"""API035: `pl.core_map`, which `pl.kernel` has replaced."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed("0.8.1", warns="0.11.0")


class CoreMap(Rule):
    """`pl.core_map` is used, which `pl.kernel` has replaced.

    ## What it does
    It reports each use. Nothing is rewritten: the refs of `pl.run_state` around it become arguments
    and results of the kernel, and which is which stands nowhere in the code.

    ## Why it fails
    Since jax 0.11.0 a DeprecationWarning: "jax.experimental.pallas.core_map is deprecated, use
    jax.experimental.pallas.kernel instead." (jax/experimental/pallas/__init__.py). It still works.

    ## Example
    ```python
    @pl.run_state
    def run(refs):
        x_ref, y_ref = refs

        @pl.core_map(mesh)
        def _():
            pltpu.sync_copy(x_ref, y_ref)

    _, y = run((x, jnp.zeros_like(x)))
    ```
    becomes, by hand,
    ```python
    def body(x_ref, y_ref):
        pltpu.sync_copy(x_ref, y_ref)

    y = pl.kernel(body, out_type=jax.ShapeDtypeStruct(x.shape, x.dtype), mesh=mesh)(x)
    ```

    ## When it is not fixed
    Always, see above.

    ## What to do by hand
    Make the body a function of its refs, inputs first, and launch it with `pl.kernel`.

    ## How it is verified
    There is nothing to verify.
    """

    code = "API035"
    name = "core-map"
    triggers = ("core_map",)
    messages = (r"core_map is deprecated",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use."""
        for node, _, call in uses(module, {"pl.core_map"}):
            yield self.reported(
                module,
                call or node,
                f"`pl.core_map` is {_CHANGE}: now `pl.kernel`",
                _CHANGE,
                _BY_HAND,
            )


_BY_HAND = Reason(
    "refs-become-arguments",
    "which of the refs around it are inputs, and which outputs, stands nowhere in the code",
    "make the body a function of its refs, inputs first: pl.kernel(body, out_type=..., mesh=mesh)",
)
