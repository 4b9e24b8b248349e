"""What makes an object of compiler parameters of a dict that is written out."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from pallas_fix.edits import Code, Edit, RemoveArgument, Replace, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.rules.access.given import is_none
from pallas_fix.rules.access.kept import kept_comments
from pallas_fix.rules.base import Reason
from pallas_fix.rules.parameters.dicts import Entries, entries, stored
from pallas_fix.rules.parameters.sources import Source

MODULES = {
    "mosaic": "pltpu",
    "mosaic_tpu": "pltpu",
    "mosaic_params": "pltpu",
    "triton": "triton",
    "mosaic_gpu": "plgpu",
}
_OLD_NAMES = {"pltpu": "TPU", "triton": "Triton", "plgpu": "GPU"}
CLASSES = {
    f"{module}.{prefix}CompilerParams": module
    for module, old in _OLD_NAMES.items()
    for prefix in ("", old)
}
"""The modules of the classes of compiler parameters, by the names of these."""
_FIELDS = {
    "pltpu": frozenset(
        "dimension_semantics allow_input_fusion vmem_limit_bytes collective_id has_side_effects "
        "flags internal_scratch_in_bytes serialization_format disable_bounds_checks".split()
    ),
    "triton": frozenset({"num_warps", "num_stages"}),
    "plgpu": frozenset(
        "approx_math dimension_semantics max_concurrent_steps profile_space profile_dir".split()
    ),
}
"""What the classes have taken as long as there are any."""
_NOTHING = frozenset({"device_type", "serialized_metadata"})
"""Keys that say nothing where they are None."""


@dataclass(frozen=True, slots=True)
class Made:
    """The edits that make an object, and whether what they mean is certain.

    `late` is true for dicts that jax took longer than others: empty ones, and those of objects.
    `ignored` are keys that no jax has read.
    """

    edits: list[Edit]
    certain: bool = True
    late: bool = False
    ignored: tuple[str, ...] = ()


class Objects:
    """Makes the object for one launch; `old` classes have the names of before jax 0.6.2."""

    def __init__(self, module: Facts, call: ast.Call, *, old: bool) -> None:
        self._module = module
        self._call = call
        self._old = old

    def of(self, source: Source, *, movable: bool) -> Made | Reason:
        """What puts the object into the place of a dict; `movable` if its cost estimate can be."""
        outer = entries(self._module, source.node)
        assert outer is not None
        if not outer.items:
            return Made([Replace(self._module.span(source.node), Code("None"))], late=True)
        chosen = self._chosen(outer)
        if isinstance(chosen, Reason):
            return chosen
        return self.inner(source.node, *chosen, movable=movable)

    def inner(self, node: ast.expr, key: str, value: ast.expr, *, movable: bool) -> Made | Reason:
        """What puts the object of a backend's own dict, `value`, into the place of `node`."""
        module, owner = self._module, MODULES[key]
        origin = module.constants.origin(value)
        is_object = isinstance(origin, ast.Call) and module.names.public(origin.func) in CLASSES
        found = entries(module, value)
        if is_object or (key == "mosaic_tpu" and found is None):
            code = Code("$inner", {"inner": module.span(value)})
            comments = kept_comments(module, node, [module.span(value)])
            return Made([Replace(module.span(node), code), *comments], late=True)
        if is_none(value) or (found is None and key != "mosaic" and key != "mosaic_params"):
            return NOT_WRITTEN
        if found is None or found.node is not value:
            return self._spread(node, owner, value, found)
        names = [name for name, _ in found.items]
        if isinstance(value, ast.Dict) and None in names:
            return self._spread(node, owner, value, found)
        return self._written(node, owner, found, movable=movable)

    def _spread(
        self, node: ast.expr, owner: str, value: ast.expr, found: Entries | None
    ) -> Made | Reason:
        """`Class(**value)`: the dict stays what it is."""
        module = self._module
        names = [name for name, _ in found.items] if found is not None else [None]
        if isinstance(value, ast.Name):
            names += [name for name, _ in stored(module, value)]
        unknown = {name for name in names if name is not None} - _FIELDS[owner]
        if "cost_estimate" in unknown:
            return _COST
        if unknown:
            return _unknown(sorted(unknown))
        spelled = module.names.spell(class_name(owner, old=self._old), self._call)
        code = Code(f"{spelled.text}(**$inner)", {"inner": module.span(value)})
        comments = kept_comments(module, node, [module.span(value)])
        edits = [Replace(module.span(node), code), *spelled.imports, *comments]
        return Made(edits, certain=None not in names)

    def _written(
        self, node: ast.expr, owner: str, inner: Entries, *, movable: bool
    ) -> Made | Reason:
        """`Class(name=value)`, of a dict that is written out in its place."""
        module = self._module
        ignored = {k: value for k, value in inner.items if _is_ignored(k, value, owner)}
        dropped = [value for key, value in inner.items if key in _NOTHING and is_none(value)]
        dropped += ignored.values()
        kept = [(key, value) for key, value in inner.items if value not in dropped]
        cost = next((value for key, value in kept if key == "cost_estimate"), None)
        values = {key: value for key, value in kept if key is not None and value is not cost}
        unknown = values.keys() - _FIELDS[owner]
        if unknown:
            return _unknown(sorted(unknown))
        spelled = module.names.spell(class_name(owner, old=self._old), self._call)
        edits: list[Edit] = list(spelled.imports)
        if cost is not None and not is_none(cost):
            if not movable:
                return _COST
            code = Code("$cost", {"cost": module.span(cost)})
            edits.append(SetKeyword(module.span(self._call), "cost_estimate", code))
        certain = all(key is not None for key, _ in inner.items)
        if isinstance(inner.node, ast.Call):
            # The call of dict() stays, with its layout and its comments: it gets the other name.
            if inner.node is not node:
                hole = {"inner": module.span(inner.node)}
                edits.append(Replace(module.span(node), Code("$inner", hole)))
            edits.append(Replace(module.span(inner.node.func), Code(spelled.text)))
            gone = [value for value in (cost, *dropped) if value is not None]
            edits += (RemoveArgument(module.span(inner.node), module.span(v)) for v in gone)
            comments = kept_comments(module, node, [module.span(inner.node)])
            return Made([*edits, *comments], certain, ignored=tuple(map(str, ignored)))
        parts = {f"v_{name}": module.span(value) for name, value in values.items()}
        text = ", ".join(f"{name}=$v_{name}" for name in values)
        edits.append(Replace(module.span(node), Code(f"{spelled.text}({text})", parts)))
        stays = [*parts.values(), *([module.span(cost)] if cost is not None else [])]
        edits += kept_comments(module, node, stays)
        return Made(edits, certain, ignored=tuple(map(str, ignored)))

    def _chosen(self, outer: Entries) -> tuple[str, ast.expr] | Reason:
        """The backend of a dict of parameters, and its part of them."""
        keys = [str(key) for key, _ in outer.items]
        if set(keys) <= _FIELDS["triton"]:
            return "triton", outer.node
        if not set(keys) <= MODULES.keys():
            return NOT_WRITTEN if "None" in keys else _unknown(sorted({*keys} - MODULES.keys()))
        found = outer.items
        if len(keys) > 1:
            wanted = self._backend_of_kernel()
            found = tuple((key, value) for key, value in found if key == wanted)
            if len(found) != 1:
                return _TWO
        [(key, value)] = found
        return str(key), value

    def _backend_of_kernel(self) -> str | None:
        names = self._module.names
        kernel = self._call.args[0] if self._call.args else argument(self._call, None, "kernel")
        function = names.definition(kernel) if kernel is not None else None
        if not isinstance(function, ast.FunctionDef):
            return None
        known = {"tpu": "mosaic", "triton": "triton", "mosaic_gpu": "mosaic_gpu"}
        return known.get(self._module.backends.by_names(function.body[0]) or "")


NOT_WRITTEN = Reason(
    "dict-not-written-out",
    "what the dict holds cannot be seen",
    "make pltpu.CompilerParams or plt.CompilerParams of it",
)
_COST = Reason(
    "cost-estimate-in-dict",
    "the cost estimate in the dict belongs to the launch, and several may take it",
    "give cost_estimate=pl.CostEstimate(...) to each launch, and take it out of the dict",
)
_TWO = Reason(
    "two-backends",
    "the dict speaks of several backends, and which one the kernel is for cannot be seen",
    "make the object of the one: pltpu.CompilerParams or plt.CompilerParams",
)


def class_name(owner: str, *, old: bool) -> str:
    """The public name of the class of a module, as it is now or was before jax 0.6.2."""
    return f"{owner}.{_OLD_NAMES[owner] if old else ''}CompilerParams"


def _is_ignored(key: str | None, value: ast.expr, owner: str) -> bool:
    """True for a key that the lowering for Triton, which asked for the others, never read."""
    if owner != "triton" or key in (None, "cost_estimate", *_FIELDS[owner], *_NOTHING):
        return False
    return not any(isinstance(node, ast.Call | ast.NamedExpr) for node in ast.walk(value))


def _unknown(names: Sequence[str]) -> Reason:
    return Reason(
        "parameter-not-known",
        f"no class takes {', '.join(names)}",
        "see the fields of the CompilerParams of the backend in your jax, and drop the others",
    )
