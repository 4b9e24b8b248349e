"""Accumulators that are allocated for all warpgroups of a kernel at once.

The scratch refs of a kernel with a `thread_name` are shared by its warpgroups, and so are those
of a `pl.run_scoped` with `collective_axes`; an accumulator lies in the registers of one
(jax/_src/pallas/mosaic_gpu/lowering.py, _run_scoped_lowering_rule).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pallas_fix.edits import Edit, RemoveArgument, RemoveElement, RemoveParameter
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Slot, argument
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.acc_code import Writer
from pallas_fix.rules.mxu.scoping import scope_edit, unscopable
from pallas_fix.rules.wgmma.stores import Traffic
from pallas_fix.rules.wgmma.trouble import Trouble

_MESSAGE = "an accumulator is allocated for all warpgroups at once"
_KERNEL = Reason(
    "kernel-not-plain",
    "the kernel takes its refs in a way that pallas-fix cannot change safely",
    "take the plgpu.ACC out of scratch_types and allocate it in the body: "
    "pl.run_scoped(scope, plgpu.ACC(shape, dtype))",
)
_NOT_VISIBLE = Reason(
    "shape-not-visible",
    "the shape of the accumulator uses names that the kernel does not see",
    "pass the shape to the kernel (functools.partial), and allocate plgpu.ACC in its body",
)
_SPLIT = Reason(
    "split-scope",
    "one pl.run_scoped allocates accumulators and refs that its threads share",
    "split it in two: the outer one with collective_axes and the shared refs, the inner one with "
    "the plgpu.ACC alone",
)


@dataclass(frozen=True, slots=True)
class Moved:
    """A ref that a function takes as a parameter until it is allocated in its body."""

    name: str
    element: ast.expr
    key: str | None


class Collective:
    """Finds accumulators that warpgroups would share in one module."""

    def __init__(self, module: Facts, traffic: Traffic) -> None:
        del traffic
        self._module = module

    def __iter__(self) -> Iterator[Trouble]:
        for trace in self._module.traces:
            if trace.launch is not None and _collective(trace.launch):
                yield from self._collective_scratch(trace, trace.launch)
        yield from self._collective_scopes()

    def _collective_scratch(self, trace: Trace, launch: Launch) -> Iterator[Trouble]:
        """`plgpu.ACC` in `scratch_types`, which all threads of a kernel would share."""
        tops = [s for s in launch.scratch or () if _all_accumulators(s)]
        if not tops:
            return
        edits = self._into_body(trace, launch, tops)
        node = tops[0].element
        if isinstance(edits, Reason):
            yield Trouble(node, _MESSAGE, reason=edits)
        else:
            yield Trouble(node, _MESSAGE, tuple(edits), function=trace.function)

    def _into_body(self, trace: Trace, launch: Launch, tops: Sequence[Slot]) -> list[Edit] | Reason:
        names = _bound(trace, launch, tops)
        shared = any(slot.shared or slot.children is not None for slot in tops)
        launched = [t for t in self._module.traces if t.function is trace.function]
        if names is None or shared or len(launched) != 1 or not self._only_launched(trace, launch):
            return _KERNEL
        moved = [Moved(n, s.element, s.key) for n, s in zip(names, tops, strict=True)]
        edits = self._scoped(trace.function, moved)
        return edits if isinstance(edits, Reason) else [*self._removed(launch, tops), *edits]

    def _scoped(self, function: Function, moved: Sequence[Moved]) -> list[Edit] | Reason:
        """Edits that allocate refs in the body of a function instead of passing them."""
        module = self._module
        names = [item.name for item in moved]
        reason = unscopable(module, function, names)
        if reason is not None:
            return reason
        edits: list[Edit] = [RemoveParameter(module.span(function), name) for name in names]
        at = function.body if isinstance(function, ast.Lambda) else function.body[0]
        writer = Writer(module, at)
        texts = []
        for item in moved:
            text = writer.moved(item.element) or self._written(writer, item.element)
            if text is None:
                return _NOT_VISIBLE
            texts.append(f"{item.key}={text}" if item.key else text)
        edits.append(scope_edit(module, function, names, ", ".join(texts), writer))
        return [*edits, *writer.imports]

    def _written(self, writer: Writer, element: ast.expr) -> str | None:
        """An allocation written anew, with the values of names that are not seen there."""
        allocation = self._module.allocations.parse(element)
        if allocation is None or allocation.shape is None or allocation.init is not None:
            return None
        shape = writer.moved(allocation.shape)
        if allocation.dtype is None:
            return None if shape is None else f"{writer.name('plgpu.ACC')}({shape})"
        dtype = writer.moved(allocation.dtype)
        if shape is None or dtype is None:
            return None
        return f"{writer.name('plgpu.ACC')}({shape}, {dtype})"

    def _removed(self, launch: Launch, tops: Sequence[Slot]) -> list[Edit]:
        span = self._module.span
        if len(tops) == len(launch.scratch or ()) and launch.scratch_node is not None:
            return [RemoveArgument(span(launch.scratch_owner), span(launch.scratch_node))]
        return [
            RemoveArgument(span(slot.container), span(slot.element))
            if isinstance(slot.container, ast.Call)
            else RemoveElement(span(slot.container), span(slot.element))
            for slot in tops
        ]

    def _only_launched(self, trace: Trace, launch: Launch) -> bool:
        """True if nothing in the file uses the kernel, or the scratch list, but this launch."""
        # The name of a decorated kernel is that of the launch.
        kernel = launch.kernel if isinstance(launch.kernel, ast.expr) else None
        inside = set(ast.walk(kernel)) if kernel is not None else set()
        for node in ast.walk(self._module.tree) if kernel is not None else ():
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
                used = self._module.names.definition(node) is trace.function
                if used and node not in inside and not isinstance(trace.function, ast.Lambda):
                    return False
        lists = {s.container for s in launch.scratch or ()}
        others = (o for o in self._module.launches if o.call is not launch.call)
        return not any(s.container in lists for other in others for s in other.scratch or ())

    def _collective_scopes(self) -> Iterator[Trouble]:
        """`pl.run_scoped(..., plgpu.ACC(...), collective_axes=...)`."""
        names = self._module.names
        for call in names.calls:
            name = names.qualified(call.func)
            partial = name == "functools.partial" and bool(call.args)
            scope = names.qualified(call.args[0]) if partial else name
            axes = argument(call, None, "collective_axes")
            if scope != "pl.run_scoped" or axes is None or _nothing(axes):
                continue
            around = names.parent[call]
            decorates = isinstance(around, ast.FunctionDef) and call in around.decorator_list
            function = around if isinstance(around, ast.FunctionDef) and decorates else None
            types = call.args[1:] if decorates or not partial else call.args[2:]
            keyed = [k for k in call.keywords if k.value is not axes and k.arg != "f"]
            own = [t for t in (*types, *(k.value for k in keyed)) if self._is_acc(t)]
            if not own:
                continue
            if len(own) == len(types) + len(keyed):
                edit = RemoveArgument(self._module.span(call), self._module.span(axes))
                yield Trouble(call, _MESSAGE, (edit,))
                continue
            body: Function | None = function
            if function is None:
                body = None if partial else self._body(call)
            elif len(function.decorator_list) > 1:
                body = None
            split = self._split(call, body, types, own)
            yield Trouble(call, _MESSAGE, tuple(split or ()), None if split else _SPLIT)

    def _is_acc(self, expr: ast.expr) -> bool:
        allocation = self._module.allocations.parse(expr)
        return allocation is not None and allocation.space == "plgpu.ACC"

    def _body(self, call: ast.Call) -> Function | None:
        """The function that a scope runs, where nothing else uses it."""
        body = argument(call, 0, "f")
        function = self._module.names.definition(body) if body is not None else None
        if isinstance(function, ast.FunctionDef) and function.decorator_list:
            return None
        uses = [
            node
            for node in ast.walk(self._module.tree)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and self._module.names.definition(node) is function
        ]
        return function if uses in ([], [body]) else None

    def _split(
        self,
        call: ast.Call,
        function: Function | None,
        types: Sequence[ast.expr],
        own: Sequence[ast.expr],
    ) -> list[Edit] | None:
        """The accumulators get a scope of their own inside the function."""
        if function is None or function.args.vararg is not None:
            return None
        parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        keys = {k.value: k.arg for k in call.keywords}
        moved = []
        for element in own:
            key = keys.get(element)
            place = types.index(element) if key is None else 0
            if any(isinstance(t, ast.Starred) for t in types) or place >= len(parameters):
                return None
            moved.append(Moved(key or parameters[place], element, key))
        edits = self._scoped(function, moved)
        if isinstance(edits, Reason):
            return None
        span = self._module.span
        return [*(RemoveArgument(span(call), span(element)) for element in own), *edits]


def _collective(launch: Launch) -> bool:
    """True where the kernel runs on several warpgroups (its scratch is allocated for all)."""
    named = argument(launch.call, None, "thread_name")
    return launch.kind == "gpu_kernel" and named is not None and not _nothing(named)


def _nothing(expr: ast.expr) -> bool:
    empty = isinstance(expr, ast.Tuple) and not expr.elts
    return empty or (isinstance(expr, ast.Constant) and expr.value is None)


def _all_accumulators(slot: Slot) -> bool:
    if slot.children is not None:
        return bool(slot.children) and all(map(_all_accumulators, slot.children))
    return slot.allocation is not None and slot.allocation.space == "plgpu.ACC"


def _bound(trace: Trace, launch: Launch, tops: Sequence[Slot]) -> list[str] | None:
    """The parameters of the kernel that the entries are bound to."""
    keyed = [slot.key for slot in tops if slot.key]
    if keyed:
        return keyed if len(keyed) == len(tops) else None
    scratch = list(launch.scratch or ())
    offset = len(trace.parameters) - len(scratch)
    if trace.function.args.vararg is not None or offset < 0:
        return None
    return [trace.parameters[offset + scratch.index(slot)] for slot in tops]
