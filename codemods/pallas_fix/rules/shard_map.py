"""JAX001: `jax.experimental.shard_map`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, Fix, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.words import imports_jax
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.rules.sharding.groups import Group, Use, groups
from pallas_fix.rules.sharding.imports import leftover, moved
from pallas_fix.versions import Change, changed

_MOVED = changed("0.6.1", warns="0.8.0")
_AUTO = changed("0.6.1", warns="0.8.0", fails="0.8.0")


class ShardMap(Rule):
    """`shard_map` comes from jax.experimental.

    ## What it does
    `jax.experimental.shard_map.shard_map` becomes `jax.shard_map`, which takes the function by
    position and all else by keyword: `mesh=`, `in_specs=`, `out_specs=`, `check_vma=` for
    `check_rep=`, and for `auto=` the other axes of the mesh, `axis_names=`. Where the name is
    imported and every use of it can be repaired, the import brings `jax.shard_map`. Calls,
    decorators, `functools.partial`, and what is later called of it, are followed; so are keys in a
    dict that is unpacked.

    ## Why it fails
    `jax.experimental.shard_map is deprecated in v0.8.0`;
    `TypeError: shard_map() got an unexpected keyword argument 'auto'` since then
    (jax/experimental/shard_map.py). The arguments of the old form are those of no new one.

    ## Example
    ```python
    from jax.experimental.shard_map import shard_map

    f = shard_map(body, mesh, in_specs=P("x"), out_specs=P("x"), check_rep=False)
    ```
    becomes
    ```python
    from jax import shard_map

    f = shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    ```

    ## When it is not fixed
    Arguments are unpacked from what is not known; the function is handed on as a value, or may be
    imported from this file by others; the axes of the mesh of an `auto=` are not known.

    ## What to do by hand
    Call `jax.shard_map(f, mesh=..., in_specs=..., out_specs=..., check_vma=...)`.

    ## How it is verified
    A case that reaches the call is traced and compiled before and after.
    """

    code = "JAX001"
    name = "shard-map"
    triggers = ("shard_map",)
    messages = (
        r"jax\.experimental\.shard_map is deprecated",
        r"shard_map\(\) got an unexpected keyword argument '(?:auto|check_rep)'",
        r"shard_map\(\) takes (?:from 0 to 1|1) positional arguments? but \d+ were given",
    )

    def concerns(self, text: str) -> bool:
        """False for a text that imports nothing public of jax."""
        return imports_jax(text)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield a finding for each import whose uses are all repaired, else for each use."""
        for group in groups(module):
            if group.shim:
                continue
            if group.reasons or (group.imported and group.exported):
                yield from self._apart(module, group)
                continue
            edits = [edit for use in group.uses for edit in use.edits]
            if group.imported:
                edits += moved(module, group.imported)
            else:
                edits += [edit for use in group.uses for edit in _named(module, use)]
            unused = bool(group.imported) and not group.uses
            yield self._finding(module, group.node, group.uses, tuple(edits), certain=not unused)
        for node, edit in leftover(module):
            yield self._finding(module, node, (), (edit,))

    def _apart(self, module: Facts, group: Group) -> Iterator[Finding]:
        for use in group.uses:
            if isinstance(use.arguments, Reason):
                yield self._finding(module, use.node, (use,), reason=use.arguments)
            elif use.direct:
                yield self._finding(
                    module, use.node, (use,), (*use.edits, *_named(module, use, apart=True))
                )
        if group.imported and group.exported:
            yield self._finding(module, group.node, (), reason=_EXPORTED)

    def _finding(
        self,
        module: Facts,
        node: ast.AST,
        uses: tuple[Use, ...],
        edits: tuple[Edit, ...] = (),
        reason: Reason | None = None,
        certain: bool = True,
    ) -> Finding:
        change = _change(uses)
        auto = "`auto=` of " if change is _AUTO else ""
        new = "jax.shard_map(axis_names=...)" if auto else "jax.shard_map"
        functions = {module.names.qualname(use.node) for use in uses} - {"<module>"}
        return Finding(
            self.code,
            module.span(node),
            f"{auto}`jax.experimental.shard_map` is {change}: now `{new}`",
            None if reason else Fix(edits, certain, functions=tuple(sorted(functions))),
            reason,
            module.names.qualname(node),
            change=change,
        )


def _change(uses: tuple[Use, ...]) -> Change:
    calls = [call for use in uses for call in use.calls]
    return _AUTO if any(call.argument("auto") is not None for call in calls) else _MOVED


def _named(module: Facts, use: Use, apart: bool = False) -> Iterator[Edit]:
    """What writes the new name in the place of the old path."""
    if apart or isinstance(use.name, ast.Attribute):
        spelling = module.names.spell("jax.shard_map", use.name)
        yield Replace(module.span(use.name), Code(spelling.text))
        yield from spelling.imports


_EXPORTED = Reason(
    "may-be-imported",
    "others may import shard_map from this file, and call it with the old arguments",
    "import it from jax, and give mesh=, in_specs=, out_specs= and check_vma= by keyword",
)
