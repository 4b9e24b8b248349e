"""One thing that is wrong with an accumulator, before it becomes a finding of a rule."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pallas_fix.edits import Edit, Fix
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation, is_accumulator
from pallas_fix.facts.names import canonical
from pallas_fix.facts.values import Event, Loaded, Ref, Trace, View
from pallas_fix.rules.base import Finding, Reason


@dataclass(frozen=True, slots=True)
class Repair:
    """Edits that belong together, and whether their meaning follows from the code alone."""

    edits: tuple[Edit, ...]
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong at `node`, with its repair or the reason why there is none."""

    node: ast.AST
    message: str
    repair: Repair | Reason

    def finding(self, module: Facts, code: str) -> Finding:
        """The finding of the rule `code` that says this."""
        function = module.names.qualname(self.node)
        span = module.span(self.node)
        if isinstance(self.repair, Reason):
            return Finding(code, span, self.message, None, self.repair, function)
        functions = () if function == "<module>" else (function,)
        fix = Fix(self.repair.edits, self.repair.certain, None, functions)
        return Finding(code, span, self.message, fix, None, function)


@dataclass(frozen=True, slots=True)
class Made:
    """One expression that allocates accumulators, with the refs it makes in each walk."""

    allocation: Allocation
    refs: tuple[tuple[Trace, Ref], ...]

    def events(self, *kinds: str) -> Iterable[tuple[Trace, Event]]:
        """The events of these kinds that reach its refs."""
        for trace, ref in self.refs:
            for event in trace.uses(ref):
                if event.kind in kinds:
                    yield trace, event


def accumulators(module: Facts) -> list[Made]:
    """Every expression that allocates `pltpu.ACC` (however misspelled), in the file's order.

    With `jax.empty_ref` and its kin the whole call is the allocation.
    """
    found: dict[ast.expr, Allocation] = {}
    refs: dict[ast.expr, list[tuple[Trace, Ref]]] = {}
    for trace in module.traces:
        for ref in trace.refs:
            if ref.allocation is not None and ref.space == "pltpu.ACC":
                found.setdefault(ref.allocation.node, ref.allocation)
                refs.setdefault(ref.allocation.node, []).append((trace, ref))
    for call in module.names.calls:
        allocation = module.allocations.parse(call)
        if allocation is not None and allocation.space == "pltpu.ACC":
            found.setdefault(call, allocation)
    nodes = sorted(found, key=lambda node: module.span(node))
    return [Made(found[node], tuple(refs.get(node, ()))) for node in nodes]


def view_node(event: Event) -> ast.expr | None:
    """The `acc.at[...]`, transform or `acc[...]` through which an event reaches its ref."""
    return event.how.node if isinstance(event.how, View | Loaded) else None


def shared_code(module: Facts, made: Made, nodes: Collection[ast.AST]) -> Reason | None:
    """Why uses cannot change: refs of another shape or dtype pass through the same code."""
    own = {ref for _, ref in made.refs}
    shape = module.constants.shape(made.allocation.shape)
    dtype = module.constants.dtype(made.allocation.dtype)
    for trace in module.traces:
        for event in trace.root.events():
            ref = event.ref
            if event.node not in nodes or ref is None or ref in own:
                continue
            other = ref.allocation
            alike = other is not None and module.constants.shape(other.shape) == shape
            if other is None or not alike or module.constants.dtype(other.dtype) != dtype:
                return Reason(
                    "shared-code",
                    f"line {module.span(event.node).line} also runs with a ref of another kind",
                    "give the accumulator a helper function of its own",
                )
    return None


def imports(module: Facts, *packages: str) -> bool:
    """True for a file that imports one of these (by short name, as `pltpu`), or of their names."""
    for scope in module.names.scopes.values():
        for binding in (b for bindings in scope.bindings.values() for b in bindings):
            targets = [binding.target] if binding.kind == "import" else []
            if isinstance(binding.node, ast.Import):
                targets += [item.name for item in binding.node.names]
            if any(canonical(target).partition(".")[0] in packages for target in targets):
                return True
    return False


def names_accumulator(module: Facts, expr: ast.AST) -> bool:
    """True for an expression that names the accumulator space, not one instance of it."""
    return is_accumulator(module.names.qualified(expr))
