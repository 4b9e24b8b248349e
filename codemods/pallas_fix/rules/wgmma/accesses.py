"""Arguments of `wgmma` and `wgmma_accumulator_load` that are not the accumulator itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.edits import Code, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.values import Event, Loaded, Ref, View
from pallas_fix.rules.base import Reason
from pallas_fix.rules.wgmma.stores import Traffic
from pallas_fix.rules.wgmma.trouble import Trouble
from pallas_fix.rules.wgmma.turned import is_turned, turn
from pallas_fix.rules.wgmma.typed import same_shape

_LOADABLE = frozenset({"plgpu.SMEM", "plgpu.GMEM"})
_NAMED = Reason(
    "indirect-argument",
    "the argument is a name for a view or a loaded value of the accumulator, made elsewhere",
    "pass the accumulator ref itself",
)
_TRANSPOSED = Reason(
    "accumulator-transpose",
    "a WGMMA accumulator has one register layout and cannot be written transposed",
    "allocate plgpu.ACC with the dimensions swapped, and swap the operands: "
    "plgpu.wgmma(acc, b.T, a.T) accumulates (a @ b).T; or transpose the loaded value",
)
_TRANSFORMED = Reason(
    "accumulator-transform",
    "a WGMMA accumulator takes no transforms but acc.at[...]",
    "allocate plgpu.ACC with the shape (a.shape[0], b.shape[1]), and reshape the loaded value",
)
_TMEM = Reason(
    "tmem-load",
    "the ref lies in tensor memory, which wgmma_accumulator_load does not read",
    "read it with plgpu.async_load_tmem(ref) (Blackwell)",
)
_SPACES = Reason(
    "several-spaces",
    "the argument is an accumulator in one call and another ref in the next",
    "write one function for accumulators and one for the other refs",
)


class Accesses:
    """Finds misused arguments in one module."""

    def __init__(self, module: Facts, traffic: Traffic) -> None:
        self._module = module
        self._traffic = traffic
        self._accumulators = traffic.accumulators

    def __iter__(self) -> Iterator[Trouble]:
        for node, events in self._accumulators.nodes("wgmma_load", "wgmma"):
            given = argument(node, 0, "acc") if isinstance(node, ast.Call) else None
            if given is None or not isinstance(node, ast.Call):
                continue
            loads = all(e.kind == "wgmma_load" for e in events)
            found = self._load(node, given, events) if loads else self._wgmma(node, given, events)
            if found is not None:
                yield found

    def _load(self, call: ast.Call, given: ast.expr, events: Sequence[Event]) -> Trouble | None:
        known = [e.ref for e in events if e.ref is not None]
        if not known or len(known) < len(events):
            return None
        own = [self._accumulators.is_accumulator(ref) for ref in known]
        if not any(own):
            return self._load_other(call, given, known, events)
        message = "wgmma_accumulator_load takes the accumulator ref itself"
        if not all(own):
            return Trouble(call, message, reason=_SPACES)
        if all(isinstance(e.how, Ref) for e in events):
            return None
        if isinstance(given, ast.Call) and all(isinstance(e.how, Loaded) for e in events):
            return Trouble(call, message, (self._instead(call, given),))
        base, index = _indexed(given)
        if base is not None and index is not None:
            return Trouble(call, message, (self._loaded(call, given, base, index),))
        if isinstance(given, ast.Attribute) and given.attr == "T":
            text = f"{self._with(call, given, given.value)}.T"
            return Trouble(call, message, (Replace(self._module.span(call), Code(text)),))
        inner = self._identity(given)
        if inner is not None:
            return Trouble(call, message, (self._instead(given, inner),))
        reason = _NAMED if isinstance(given, ast.Name) else _TRANSFORMED
        return Trouble(call, message, reason=reason)

    def _load_other(
        self, call: ast.Call, given: ast.expr, refs: Sequence[Ref], events: Sequence[Event]
    ) -> Trouble | None:
        """A ref of another memory space is read by indexing it."""
        spaces = {self._space(ref) for ref in refs}
        if "plgpu.TMEM" in spaces:
            return Trouble(call, "wgmma_accumulator_load of a TMEM ref", reason=_TMEM)
        accumulates = any(
            e.kind == "wgmma" for ref in refs for e in self._accumulators.by_ref.get(ref, ())
        )
        if not spaces <= _LOADABLE or accumulates:
            return None
        where = " and ".join(sorted(space.removeprefix("plgpu.") for space in spaces))
        message = f"wgmma_accumulator_load of a ref in {where}"
        if all(isinstance(e.how, Loaded) for e in events):
            return Trouble(call, message, (self._instead(call, given),))
        if all(isinstance(e.how, Ref) for e in events):
            code = Code("$ref[...]", {"ref": self._module.span(given)})
            return Trouble(call, message, (Replace(self._module.span(call), code),))
        base, index = _indexed(given)
        if base is None or index is None:
            return Trouble(call, message, reason=_NAMED)
        text = f"{self._module.source(base)}[{self._module.source(index)}]"
        return Trouble(call, message, (Replace(self._module.span(call), Code(text)),))

    def _wgmma(self, call: ast.Call, given: ast.expr, events: Sequence[Event]) -> Trouble | None:
        refs = [e.ref for e in events if e.ref is not None]
        if not refs or len(refs) < len(events):
            return None
        if all(isinstance(e.how, Ref) for e in events):
            return None
        message = "the first argument of wgmma is not the accumulator ref"
        if all(isinstance(e.how, Loaded) for e in events):
            if isinstance(given, ast.Name):
                return Trouble(call, message, reason=_NAMED)
            base = _subject(given)
            if base is None:
                return None
            _, index = _indexed(given)
            span = self._module.span(given)
            if index is None or all(isinstance(e.how, Loaded) and e.how.whole for e in events):
                return Trouble(call, message, (self._instead(given, base),))
            text = f"{self._module.source(base)}.at[{self._module.source(index)}]"
            return Trouble(call, message, (Replace(span, Code(text)),))
        if not all(self._accumulators.is_accumulator(ref) for ref in refs) or _only_at(given):
            return None
        inner = self._identity(given)
        if inner is not None:
            return Trouble(call, message, (self._instead(given, inner),))
        if isinstance(given, ast.Name):
            views = [e.how.node for e in events if isinstance(e.how, View)]
            if all(isinstance(v, ast.expr) and _only_at(v) for v in views):
                return None
            return Trouble(call, message, reason=_NAMED)
        if is_turned(given) is None:
            return Trouble(call, message, reason=_TRANSFORMED)
        edits = turn(self._module, self._accumulators, refs)
        return Trouble(call, message, tuple(edits or ()), None if edits else _TRANSPOSED)

    def _identity(self, given: ast.expr) -> ast.expr | None:
        """The accumulator in `acc.reshape(M, N)` where that is the shape that it has."""
        if not isinstance(given, ast.Call) or _method(given) != "reshape":
            return None
        assert isinstance(given.func, ast.Attribute)
        base = given.func.value
        refs = self._accumulators.refs(self._module.names.parent[given])
        held = self._traffic.shapes.refs(refs, base).shape
        shapes = self._traffic.shapes
        if len(given.args) == 1:
            shape = shapes.shape(given.args[0])
        else:
            shape = tuple(shapes.dim(a) for a in given.args)
        return base if same_shape(shape, held) and isinstance(base, ast.Name) else None

    def _space(self, ref: Ref) -> str:
        if ref.kind == "operand" and ref.launch is not None:
            return "plgpu.GMEM" if ref.launch.kind == "gpu_kernel" else ""
        return ref.space or ""

    def _instead(self, node: ast.expr, inner: ast.expr) -> Replace:
        code = Code("$inner", {"inner": self._module.span(inner)})
        return Replace(self._module.span(node), code)

    def _loaded(self, call: ast.Call, given: ast.expr, base: ast.expr, index: ast.expr) -> Replace:
        """The load of the whole accumulator, and the index after it where it selects a part."""
        refs = self._accumulators.refs(call)
        if self._traffic.shapes.covers(index, self._traffic.shapes.refs(refs, base).shape):
            return self._instead(given, base)
        text = f"{self._with(call, given, base)}[{self._module.source(index)}]"
        return Replace(self._module.span(call), Code(text))

    def _with(self, call: ast.Call, given: ast.expr, base: ast.expr) -> str:
        """The text of a call with one argument replaced."""
        source = self._module.source
        texts = [source(base if a is given else a) for a in call.args]
        for keyword in call.keywords:
            value = source(base if keyword.value is given else keyword.value)
            texts.append(f"{keyword.arg}={value}" if keyword.arg else f"**{value}")
        return f"{source(call.func)}({', '.join(texts)})"


def _indexed(given: ast.expr) -> tuple[ast.expr | None, ast.expr | None]:
    """Ref and index of `ref[index]` and `ref.at[index]`."""
    if not isinstance(given, ast.Subscript):
        return None, None
    base = given.value
    if isinstance(base, ast.Attribute) and base.attr == "at":
        base = base.value
    return (base, given.slice) if isinstance(base, ast.Name | ast.Attribute) else (None, None)


def _subject(given: ast.expr) -> ast.expr | None:
    """The ref in `acc[...]` and `plgpu.wgmma_accumulator_load(acc)`."""
    if isinstance(given, ast.Call):
        return argument(given, 0, "acc")
    return _indexed(given)[0]


def _method(given: ast.expr) -> str:
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
        return given.func.attr
    return ""


def _only_at(given: ast.expr) -> bool:
    """True for `acc.at[...]`, once or more, which `wgmma` takes."""
    while isinstance(given, ast.Subscript):
        if not isinstance(given.value, ast.Attribute) or given.value.attr != "at":
            return False
        given = given.value.value
    return isinstance(given, ast.Name)
