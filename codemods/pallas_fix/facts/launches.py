"""Calls that run a kernel, and the lists from which they give it its scratch refs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.facts.allocations import Allocations, Slot, argument
from pallas_fix.facts.constants import Constants
from pallas_fix.facts.names import Names

KINDS = {
    "pl.pallas_call": "pallas_call",
    "pl.kernel": "kernel",
    "plgpu.kernel": "gpu_kernel",
    "pl.core_map": "core_map",
    "pltpu.core_map": "core_map",
}


@dataclass(eq=False, slots=True)
class Launch:
    """A call that runs a kernel.

    `kernel` is the expression of the kernel function, or the `def` that the launch decorates.
    `scratch` are its scratch slots (None: not certain), `scratch_node` the expression that
    holds them and `scratch_owner` the call that takes it (the launch or its grid spec).
    `outputs` counts the outputs, None where that is not certain.
    """

    kind: str
    call: ast.Call
    kernel: ast.expr | ast.FunctionDef | None
    scratch: tuple[Slot, ...] | None
    scratch_keyword: str
    scratch_node: ast.expr | None
    scratch_owner: ast.Call
    outputs: int | None
    prefetched: int
    grid: ast.expr | None

    @property
    def decorator(self) -> bool:
        """True where the launch decorates its kernel."""
        return isinstance(self.kernel, ast.FunctionDef)

    @property
    def repeats(self) -> bool:
        """True where the kernel may run more than once for a launch: over a grid.

        A grid may hide in `**options`, or in a grid spec that is not written out here.
        """
        keywords = {keyword.arg for keyword in self.call.keywords}
        hidden = None in keywords or ("grid_spec" in keywords and self.scratch_owner is self.call)
        return hidden or self.grid is not None


class Launches:
    """Finds the launches of one module."""

    def __init__(self, names: Names, constants: Constants, allocations: Allocations) -> None:
        self._names = names
        self._constants = constants
        self._allocations = allocations

    def __iter__(self) -> Iterator[Launch]:
        for call in self._names.calls:
            name = self._names.qualified(call.func)
            if name in KINDS:
                yield self._launch(call, KINDS[name], call.args, self._kernel(call, KINDS[name]))
            elif name == "functools.partial" and call.args:
                inner = self._names.qualified(call.args[0])
                decorated = self._decorated(call)
                if inner in KINDS and decorated is not None:
                    yield self._launch(call, KINDS[inner], call.args[1:], decorated)

    def _kernel(self, call: ast.Call, kind: str) -> ast.expr | ast.FunctionDef | None:
        if kind != "core_map":
            given = argument(call, 0, "kernel" if kind == "pallas_call" else "body")
            if given is not None:
                return given
        decorated = self._decorated(call)
        if decorated is not None:
            return decorated
        around = self._names.parent[call]
        if isinstance(around, ast.Call) and around.func is call and len(around.args) == 1:
            return around.args[0]
        return None

    def _decorated(self, call: ast.Call) -> ast.FunctionDef | None:
        around = self._names.parent[call]
        if isinstance(around, ast.FunctionDef) and call in around.decorator_list:
            return around
        return None

    def _launch(
        self,
        call: ast.Call,
        kind: str,
        positional: list[ast.expr],
        kernel: ast.expr | ast.FunctionDef | None,
    ) -> Launch:
        owner, prefetched = call, 0
        spec = self._grid_spec(argument(call, None, "grid_spec"))
        if spec is not None:
            owner = spec
            count = self._constants.fold(argument(spec, 0, "num_scalar_prefetch"))
            prefetched = count if isinstance(count, int) else 0
        keyword, node = "scratch_shapes", None
        for spelled in ("scratch_types", "scratch_shapes"):
            found = argument(owner, None, spelled)
            if found is not None:
                keyword, node = spelled, found
        slots = self._allocations.slots(node) if node is not None else ()
        shape = argument(call, None, "out_shape") or argument(call, None, "out_type")
        shape = shape or (positional[1] if len(positional) > 1 else None)
        grid = argument(owner, None, "grid")
        outputs = self._outputs(kind, shape)
        return Launch(kind, call, kernel, slots, keyword, node, owner, outputs, prefetched, grid)

    def _outputs(self, kind: str, shape: ast.expr | None) -> int | None:
        node = self._constants.origin(shape)
        if kind == "core_map" or node is None:
            return 0 if kind != "pallas_call" else None
        if isinstance(node, ast.Tuple | ast.List):
            starred = any(isinstance(e, ast.Starred) for e in node.elts)
            return None if starred else len(node.elts)
        return 1 if isinstance(node, ast.Call) else None

    def _grid_spec(self, expr: ast.expr | None) -> ast.Call | None:
        node = self._constants.origin(expr)
        for _ in range(3):
            if not isinstance(node, ast.Call):
                return None
            name = self._names.qualified(node.func) or ""
            if name.rpartition(".")[2].endswith("GridSpec"):
                return node
            function = self._names.definition(node.func)
            node = self._constants.origin(self._allocations.returned(function))
        return None
