"""API032: barriers that are indexed although they are made without a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Fix, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Event, View
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed(fails="0.11.2")
_KINDS = frozenset({"plgpu.Barrier", "plgpu.ClusterBarrier"})


class BarrierIndex(Rule):
    """A barrier made without `num_barriers=` is indexed.

    ## What it does
    Gives `plgpu.Barrier(...)` and `plgpu.ClusterBarrier(...)` the argument `num_barriers=1` where
    the kernel takes `barrier.at[0]`.

    ## Why it fails
    On jax 0.11.2 and later: ``ValueError: `indices` must not be longer than `shape`: indices=(0,),
    shape=()``. The default of `num_barriers` was 1, an array of one barrier; it is `()` now, a
    single barrier (jax/_src/pallas/mosaic_gpu/core.py).

    ## Example
    ```python
    def body(x_ref, o_ref, smem, barrier):
        plgpu.copy_gmem_to_smem(x_ref, smem, barrier.at[0])

    plgpu.kernel(body, scratch_types=[plgpu.SMEM((8,), jnp.int32), plgpu.Barrier()], **others)
    ```
    becomes
    ```python
    plgpu.kernel(
        body, scratch_types=[plgpu.SMEM((8,), jnp.int32), plgpu.Barrier(num_barriers=1)], **others)
    ```

    ## When it is not fixed
    The barrier is indexed in one place and used whole in another, or the arguments are unpacked.

    ## What to do by hand
    Use the barrier in one way: give `num_barriers=1` and index it, or leave both out.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API032"
    name = "barrier-index"
    triggers = ("Barrier(",)
    messages = (r"`indices` must not be longer than `shape`: indices=\(.*\), shape=\(\)",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each barrier that is indexed."""
        made = [c for c in module.names.calls if module.names.public(c.func) in _KINDS]
        if all(_is_numbered(call) for call in made):
            return
        used: dict[ast.Call, list[Event]] = {}
        for trace in module.traces:
            for ref in trace.refs:
                origin = module.constants.origin(ref.slot.element) if ref.slot else None
                if isinstance(origin, ast.Call) and origin in made and not _is_numbered(origin):
                    used.setdefault(origin, []).extend(trace.uses(ref))
        for call, events in used.items():
            indexed = [event for event in events if isinstance(event.how, View)]
            if indexed and not module.is_guarded(module.span(call)):
                yield self._finding(module, call, whole=len(indexed) < len(events))
        for call in made:
            if call not in used and not _is_numbered(call) and _indexed_by_place(module, call):
                yield self._finding(module, call, whole=False, certain=False)

    def _finding(self, module: Facts, call: ast.Call, whole: bool, certain: bool = True) -> Finding:
        unpacked = any(keyword.arg is None for keyword in call.keywords)
        fix = Fix((SetKeyword(module.span(call), "num_barriers", Code("1")),), certain)
        return Finding(
            self.code,
            module.span(call),
            f"the default `num_barriers=1` is {_CHANGE}: an indexed barrier asks for it now",
            None if whole or unpacked else fix,
            _MIXED if whole else _UNPACKED if unpacked else None,
            module.names.qualname(call),
            change=_CHANGE,
        )


_MIXED = Reason(
    "used-whole-too",
    "the barrier is indexed in one place and used whole in another",
    "index it everywhere and give num_barriers=1, or nowhere",
)
_UNPACKED = Reason(
    "arguments-unpacked",
    "its arguments are unpacked, and num_barriers may be among them",
    "give num_barriers=1 where it is not",
)


def _is_numbered(call: ast.Call) -> bool:
    return any(keyword.arg == "num_barriers" for keyword in call.keywords) or len(call.args) > 1


def _indexed_by_place(module: Facts, call: ast.Call) -> bool:
    """True if the barrier is in scratch that reaches `plgpu.kernel` as `**settings`.

    Scratch refs are the last parameters of the kernel: the place in the list says which.
    """
    names = module.names
    scratch: ast.AST = names.parent[call]
    place: ast.expr = call
    if isinstance(scratch, ast.Assign):
        loads = [name for node in ast.walk(module.tree) if (name := _name(node))]
        uses = [name for name in loads if module.constants.origin(name) is call]
        place = next((n for n in uses if isinstance(names.parent[n], ast.List | ast.Tuple)), call)
        scratch = names.parent[place]
    if not isinstance(scratch, ast.List | ast.Tuple):
        return False
    for launch in module.launches:
        function = names.definition(launch.kernel) if isinstance(launch.kernel, ast.Name) else None
        if launch.kind != "gpu_kernel" or launch.scratch_node is not None or function is None:
            continue
        if not any(scratch in ast.walk(value) for value in _settings(module, launch.call)):
            continue
        parameters = function.args.args
        number = len(parameters) - len(scratch.elts) + scratch.elts.index(place)
        if 0 <= number < len(parameters) and _takes_at(function, parameters[number].arg):
            return True
    return False


def _settings(module: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """What a call may unpack as keywords: every value that the name is given."""
    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            found = module.names.lookup(keyword.value.id, module.names.scope(call))
            for binding in found[1] if found else ():
                if binding.value is not None:
                    yield binding.value
                    yield from _named(module, binding.value)


def _named(module: Facts, settings: ast.expr) -> Iterator[ast.expr]:
    """The lists that the values of a dict are names of."""
    for node in ast.walk(settings):
        origin = module.constants.origin(_name(node))
        if isinstance(origin, ast.List | ast.Tuple):
            yield origin


def _name(node: ast.AST) -> ast.Name | None:
    return node if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None


def _takes_at(function: Function, parameter: str) -> bool:
    """True if every use of a parameter is `parameter.at[...]`."""
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == parameter]
    viewed = [
        n.value
        for n in ast.walk(function)
        if isinstance(n, ast.Attribute) and n.attr == "at" and n.value in uses
    ]
    return bool(uses) and len(viewed) == len(uses)
