"""`plgpu.ACC.init(value)` in `pl.run_scoped`, which only `pl.run_state` takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Edit, InsertBefore, InsertFirst, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import Allocation, argument
from pallas_fix.facts.names import Function
from pallas_fix.facts.values import Ref
from pallas_fix.rules.base import Reason
from pallas_fix.rules.wgmma.stores import Traffic
from pallas_fix.rules.wgmma.trouble import Trouble

_MESSAGE = "plgpu.ACC.init works in pl.run_state only"
_ELSEWHERE = Reason(
    "init-elsewhere",
    "the accumulator is not written as an argument of a pl.run_scoped with a plain function",
    "pl.run_state(f)(plgpu.ACC.init(value)), which returns the final value; or allocate "
    "plgpu.ACC(value.shape, value.dtype) and store acc[...] = value first in the scope",
)


class Initial:
    """Finds preinitialised accumulators in one module, and how they are stored instead."""

    def __init__(self, module: Facts, traffic: Traffic) -> None:
        self._module = module
        self._names = module.names
        self._accumulators = traffic.accumulators

    def __iter__(self) -> Iterator[Trouble]:
        done: set[ast.AST] = set()
        for trace in self._module.traces:
            for ref in trace.refs:
                allocation = ref.allocation
                if allocation is None or allocation.init is None or allocation.node in done:
                    continue
                call = self._scope(ref)
                if call is not None:
                    done.add(allocation.node)
                    yield self._trouble(call, ref, allocation, allocation.init)

    def _scope(self, ref: Ref) -> ast.Call | None:
        """The call that allocates the ref, where it is a scope and not `pl.run_state`."""
        container = ref.slot.container if ref.slot is not None else None
        if not isinstance(container, ast.Call):
            return None
        name = self._names.qualified(container.func)
        if name == "functools.partial" and container.args:
            name = self._names.qualified(container.args[0])
        scopes = ("pl.run_scoped", "pl.with_scoped", "plgpu.kernel")
        return container if name in scopes else None

    def _trouble(
        self, call: ast.Call, ref: Ref, allocation: Allocation, value: ast.expr
    ) -> Trouble:
        edits = self._edits(call, ref, allocation, value)
        if edits is None:
            return Trouble(allocation.node, _MESSAGE, reason=_ELSEWHERE)
        return Trouble(allocation.node, _MESSAGE, tuple(edits))

    def _edits(
        self, call: ast.Call, ref: Ref, allocation: Allocation, value: ast.expr
    ) -> list[Edit] | None:
        body = self._body(call)
        place = _place(call, ref)
        constructor = allocation.space_node
        if body is None or place is None or allocation.node is not (ref.slot and ref.slot.element):
            return None
        if not isinstance(constructor, ast.Attribute) or self._outer(call) is None:
            return None
        edits: list[Edit] = []
        name = self._visible_name(call, value)
        if name is None:
            name = self._free(call, "init")
            hole = {"value": self._module.span(value)}
            edits.append(self._before(call, Code(f"{name} = $value", hole)))
        text = f"{self._module.source(constructor.value)}({name}.shape, {name}.dtype)"
        edits.append(Replace(self._module.span(allocation.node), Code(text)))
        first = self._first(call, body, place, name)
        return None if first is None else [*edits, *first]

    def _first(
        self, call: ast.Call, body: ast.expr | Function, place: int | str, name: str
    ) -> list[Edit] | None:
        """Edits that make the store the first thing that the scope does."""
        function = body if isinstance(body, ast.FunctionDef) else None
        if function is None and isinstance(body, ast.Name):
            definition = self._names.definition(body)
            single = isinstance(definition, ast.FunctionDef) and self._uses(definition) == 1
            function = definition if isinstance(definition, ast.FunctionDef) and single else None
        if function is not None and self._sees(function, call, name):
            parameter = _parameter(function, place)
            if parameter is None or function.args.vararg is not None:
                return None
            store = Code(f"{parameter}[...] = {name}")
            return [InsertFirst(self._module.span(function), store)]
        return self._wrapped(call, body, place, name) if isinstance(body, ast.expr) else None

    def _wrapped(
        self, call: ast.Call, body: ast.expr, place: int | str, name: str
    ) -> list[Edit] | None:
        """A new function before the statement: it stores, and then does what the old one did."""
        span = self._module.span(body)
        fresh = self._free(call, "scope")
        if isinstance(body, ast.Lambda):
            parameter = _parameter(body, place)
            if parameter is None or name in self._names.scopes[body].bindings:
                return None
            parameters = self._module.source(body)[len("lambda") :].partition(":")[0].strip()
            plain = not body.args.defaults and not body.args.kwonlyargs
            if not plain or body.args.vararg is not None:
                return None
            hole = {"result": self._module.span(body.body)}
            result = "$result"
        else:
            given = call.args[1:]
            keys = [k.arg for k in call.keywords if k.arg != "collective_axes"]
            if None in keys or any(isinstance(a, ast.Starred) for a in given):
                return None
            listed = [f"ref_{i}" if len(given) > 1 else "acc" for i in range(len(given))]
            parameter = listed[place] if isinstance(place, int) else place
            parameters = ", ".join([*listed, *map(str, keys)])
            passed = ", ".join([*listed, *(f"{key}={key}" for key in keys)])
            hole = {"body": span}
            result = f"$body({passed})"
        text = f"def {fresh}({parameters}):\n    {parameter}[...] = {name}\n    return {result}"
        return [self._before(call, Code(text, hole)), Replace(span, Code(fresh))]

    def _body(self, call: ast.Call) -> ast.expr | Function | None:
        """The function that the scope runs."""
        around = self._names.parent[call]
        if isinstance(around, ast.FunctionDef) and call in around.decorator_list:
            partial = self._names.qualified(call.func) == "functools.partial"
            return around if partial and len(around.decorator_list) == 1 else None
        if self._names.qualified(call.func) == "pl.run_scoped":
            return argument(call, 0, "f")
        return None

    def _outer(self, call: ast.Call) -> ast.stmt | None:
        """The statement of the call, where new names before it are seen by the call."""
        statement = self._names.statement(call)
        if isinstance(statement, ast.FunctionDef):
            return statement
        inside = self._names.scope(call) is self._names.scope(statement)
        return statement if inside else None

    def _before(self, call: ast.Call, code: Code) -> InsertBefore:
        return InsertBefore(self._module.span(self._names.statement(call)), code)

    def _visible_name(self, call: ast.Call, value: ast.expr) -> str | None:
        """The name that the value is, if it is one of a function's own variables."""
        if not isinstance(value, ast.Name):
            return None
        found = self._names.lookup(value.id, self._names.scope(call))
        return value.id if found is not None else None

    def _sees(self, function: ast.FunctionDef, call: ast.Call, name: str) -> bool:
        """True if `name` means the same inside the function as at the call."""
        here = self._names.lookup(name, self._names.scope(call))
        there = self._names.lookup(name, self._names.scopes[function])
        if here is not None:
            return there is not None and there[0] is here[0]
        return self._names.scope(function) is self._names.scope(call)

    def _uses(self, function: ast.FunctionDef) -> int:
        return sum(
            isinstance(node, ast.Name)
            and node.id == function.name
            and isinstance(node.ctx, ast.Load)
            and self._names.definition(node) is function
            for node in ast.walk(self._module.tree)
        )

    def _free(self, call: ast.Call, base: str) -> str:
        return self._names.fresh(base)


def _place(call: ast.Call, ref: Ref) -> int | str | None:
    """The position of the ref among the types of the scope, or its keyword."""
    element = ref.slot.element if ref.slot is not None else None
    for keyword in call.keywords:
        if keyword.value is element:
            return keyword.arg
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    return call.args.index(element) - 1 if element in call.args else None


def _parameter(function: Function, place: int | str) -> str | None:
    if isinstance(place, str):
        return place
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return names[place] if place < len(names) else None
