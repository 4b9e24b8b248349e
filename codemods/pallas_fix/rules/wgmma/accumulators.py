"""The accumulators of a module: which refs are `plgpu.ACC`, and what is done to them where.

A ref is known to be an accumulator where its allocation says so, or where it reaches the first
argument of `plgpu.wgmma` or `plgpu.wgmma_accumulator_load`, which take nothing else
(jax/_src/pallas/mosaic_gpu/primitives.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import Event, Ref

_USES = frozenset({"wgmma", "wgmma_load", "wgmma_store"})


class Accumulators:
    """What the walks through a module say of refs, by the node at which it happens."""

    def __init__(self, module: Facts) -> None:
        self._module = module
        self.events: dict[ast.AST, list[Event]] = {}
        self.by_ref: dict[Ref, list[Event]] = {}
        self._variables: dict[tuple[ast.AST, str], set[Ref]] = {}
        for trace in module.traces:
            for event in trace.root.events():
                self.events.setdefault(event.node, []).append(event)
                if event.ref is not None:
                    self.by_ref.setdefault(event.ref, []).append(event)
                    self._name(event, event.ref)

    def is_accumulator(self, ref: Ref | None) -> bool:
        """True for a ref that is a `plgpu.ACC`, or is used as only an accumulator can be."""
        if ref is None:
            return False
        if ref.space is not None:
            return ref.space == "plgpu.ACC"
        if ref.kind not in ("param", "scoped", "scratch"):
            return False
        return any(e.kind in _USES and e.how is ref for e in self.by_ref.get(ref, ()))

    def at(self, node: ast.AST, *kinds: str) -> list[Ref]:
        """The accumulators that events of these kinds at a node concern.

        Empty where the node has no such event, or where one of them is about another ref.
        """
        events = [e for e in self.events.get(node, ()) if e.kind in kinds]
        refs = [e.ref for e in events if e.ref is not None and self.is_accumulator(e.ref)]
        return list(dict.fromkeys(refs)) if len(refs) == len(events) else []

    def named(self, name: ast.expr) -> list[Ref]:
        """The refs that a name stands for where events tell, though this use of it has none."""
        variable = self._variable(name)
        found = self._variables.get(variable, set()) if variable is not None else set()
        return sorted(found, key=id)

    def refs(self, node: ast.AST) -> list[Ref]:
        """All refs that events at a node concern, of any memory space."""
        found = [e.ref for e in self.events.get(node, ())]
        return list(dict.fromkeys(r for r in found if r is not None)) if None not in found else []

    def _name(self, event: Event, ref: Ref) -> None:
        if event.how is not ref:
            return
        node = event.node
        inner = node.value if isinstance(node, ast.Attribute | ast.Subscript) else node
        first = argument(node, 0, "acc") if isinstance(node, ast.Call) else inner
        variable = self._variable(first) if isinstance(first, ast.expr) else None
        if variable is not None and event.kind not in ("store", "update", "escape"):
            self._variables.setdefault(variable, set()).add(ref)

    def _variable(self, name: ast.expr) -> tuple[ast.AST, str] | None:
        names = self._module.names
        if not isinstance(name, ast.Name):
            return None
        found = names.lookup(name.id, names.scope(name))
        return (found[0].node, name.id) if found is not None and len(found[1]) == 1 else None

    def nodes(self, *kinds: str) -> Iterator[tuple[ast.AST, list[Event]]]:
        """The nodes with events of these kinds, in the order of the file."""
        found = [n for n, events in self.events.items() if any(e.kind in kinds for e in events)]
        for node in sorted(found, key=self._module.span):
            yield node, [e for e in self.events[node] if e.kind in kinds]


def steady(expr: ast.expr) -> bool:
    """True for an expression that may be written again: names, attributes, constant indices."""
    match expr:
        case ast.Name():
            return True
        case ast.Attribute(value=inner):
            return steady(inner)
        case ast.Subscript(value=inner, slice=ast.Constant() | ast.Name()):
            return steady(inner)
        case _:
            return False
