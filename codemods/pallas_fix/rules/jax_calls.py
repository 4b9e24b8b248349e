"""JAX002: functions and attributes of jax that have become others."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_fix.edits import Fix
from pallas_fix.facts import Facts
from pallas_fix.facts.words import imports_jax
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.changed_calls import contexts, functions, varying
from pallas_fix.rules.changed_calls.place import Place


class ChangedCall(Rule):
    """A function or an attribute of jax is used that is another one now, in another form.

    ## What it does
    | before | now | from jax | gone from |
    |---|---|---|---|
    | `jax.lax.pvary(x, axes)` | `jax.lax.pcast(x, axes, to="varying")` | 0.8.2 | 0.10.0 |
    | `jax.typeof(x).vma` | `jax.typeof(x).manual_axis_type.varying` | 0.10.0 | 0.10.0 |
    | `jax.core.axis_frame(name).size` | `jax.lax.axis_size(name)` | 0.6.1 | 0.7.0 |
    | `jax.core.raise_to_shaped(aval)` | `aval` | 0.4.36 | 0.6.0 |
    | `jax.core.full_lower(x)` | `x` | 0.4.36 | 0.6.0 |
    | `jax.core.is_constant_dim(d)` | `isinstance(d, int)` | | 0.11.0 |
    | `jax.interpreters.batching.not_mapped` | `None` | | 0.10.2 |
    | `jax.random.shuffle(key, x)` | `jax.random.permutation(key, x, independent=True)` | | 0.4.31 |
    | `jax.experimental.enable_x64()` | `jax.enable_x64(True)` | 0.8.0 | 0.9.0 |
    | `pjit(f, in_specs, out_specs)` | `jax.jit(f, in_shardings=..., out_shardings=...)` | | |
    | `with mesh:` | `with jax.set_mesh(mesh):` | 0.7.1 | |

    The last two still work, with a DeprecationWarning since jax 0.8.0 and 0.10.1.

    ## Why it fails
    `AttributeError: module 'jax.lax' has no attribute 'pvary'`,
    `AttributeError: 'ShapedArray' object has no attribute 'vma'`, and so on
    (jax/lax/__init__.py, jax/core.py, jax/_src/core.py, jax/_src/mesh.py).

    ## Example
    ```python
    y = jax.lax.pvary(jnp.zeros_like(x), ("x",))
    ```
    becomes
    ```python
    y = jax.lax.pcast(jnp.zeros_like(x), ("x",), to="varying")
    ```

    ## When it is not fixed
    The arguments are unpacked, or the new form has none for one of them; the function is handed on
    as a value; it cannot be seen whether something is the type of a value; `with mesh as name`,
    or a mesh that is entered in a jitted function, which `jax.set_mesh` does not allow. Whether a
    `with` enters a mesh is only asked where the mesh is made in the file, or is a parameter that
    is annotated as one.

    ## What to do by hand
    The finding says it.

    ## How it is verified
    A case that reaches the place is traced and compiled before and after, where the installed jax
    has both forms.
    """

    code = "JAX002"
    name = "changed-call"
    triggers = (*sorted(functions.WORDS), ".vma", "Mesh", "make_mesh")
    messages = (
        r"module 'jax\.lax' has no attribute 'pvary'",
        r"jax\.lax\.pvary was deprecated",
        r"'(?:ShapedArray|ShapeDtypeStruct)' object has no attribute 'vma'",
        r"jax\.core\.(?:axis_frame|raise_to_shaped|full_lower|is_constant_dim) (?:is|was) ",
        r"module 'jax\.core' has no attribute "
        r"'(?:axis_frame|raise_to_shaped|full_lower|is_constant_dim)'",
        r"module 'jax\.interpreters\.batching' has no attribute 'not_mapped'",
        r"module 'jax\.random' has no attribute 'shuffle'",
        r"jax\.experimental\.(?:x64_context\.)?(?:en|dis)able_x64 (?:is|was) ",
        r"module 'jax\.experimental' has no attribute '(?:en|dis)able_x64'",
        r"jax\.experimental\.pjit\.pjit has been deprecated",
        r"`with mesh:` context manager has been deprecated",
    )

    def concerns(self, text: str) -> bool:
        """False for a text that imports nothing public of jax."""
        return imports_jax(text)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each place."""
        for room in (functions, varying, contexts):
            for place in room.found(module):
                if not module.is_guarded(module.span(place.node)):
                    yield self._finding(module, place)

    def _finding(self, module: Facts, place: Place) -> Finding:
        reason = place.answer if isinstance(place.answer, Reason) else None
        edits = () if isinstance(place.answer, Reason) else place.answer
        qualname = module.names.qualname(place.node)
        functions = () if qualname == "<module>" else (qualname,)
        return Finding(
            self.code,
            module.span(place.node),
            f"`{place.old}` is {place.change}: now `{place.new}`",
            None if reason else Fix(edits, place.certain, functions=functions),
            reason,
            qualname,
            change=place.change,
        )
