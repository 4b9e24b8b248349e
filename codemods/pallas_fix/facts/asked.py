"""Which backends a launch asks for: its parameters, its memory spaces, its interpreter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.allocations import argument
from pallas_fix.facts.constants import Constants
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Names

TPU, TRITON, MOSAIC_GPU = "tpu", "triton", "mosaic_gpu"
_BY_MODULE = {"pltpu": TPU, "plsc": TPU, "triton": TRITON, "plgpu": MOSAIC_GPU}
_BY_WORD = {"mosaic_tpu": TPU, "mosaic": TPU, "triton": TRITON, "mosaic_gpu": MOSAIC_GPU}
_TRITON_KEYWORDS = frozenset({"num_warps", "num_stages"})
_PARTS = ("grid_spec", "in_specs", "out_specs", "scratch_shapes", "scratch_types", "mesh")
_DEPTH = 5


def backend_of(name: str | None) -> str | None:
    """The backend that alone has a canonical name, by the module that it is of."""
    if name is not None and (name.startswith("pl.atomic_") or name == "pl.max_contiguous"):
        return TRITON  # no other backend has ever lowered them
    return _BY_MODULE.get((name or "").partition(".")[0])


class Asked:
    """What the launches of one module ask for."""

    def __init__(self, names: Names, constants: Constants) -> None:
        self._names = names
        self._constants = constants

    def backends(self, launch: Launch) -> set[str]:
        """The backends that a launch speaks of: none, the one, or several."""
        call = launch.call
        function = call.args[0] if launch.decorator and call.args else call.func
        own = backend_of(self._names.qualified(call.func)) or backend_of(
            self._names.qualified(function)
        )
        if own is not None:
            return {own}
        found: set[str] = set()
        for params in self._given(call, "compiler_params"):
            for value in self.values(params):
                found.update(self._spoken(value), self._keys(value))
        for named in self._given(call, "backend"):
            folded = self._constants.fold(named)
            if isinstance(folded, str) and folded in _BY_WORD:
                found.add(_BY_WORD[folded])
        if any(True for word in _TRITON_KEYWORDS for _ in self._given(call, word)):
            found.add(TRITON)
        for word in (*_PARTS, "interpret"):
            for part in self._given(call, word):
                found.update(self._spoken(part))
        mesh = argument(call, 0, "mesh") if launch.kind == "core_map" else None
        return found if mesh is None else found | set(self._spoken(mesh))

    def values(self, expr: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
        """The expressions whose value one may have: arms, assignments, what a function returns."""
        if depth > _DEPTH:
            return
        inner: list[ast.expr] = []
        match expr:
            case ast.IfExp(body=body, orelse=orelse):
                inner = [body, orelse]
            case ast.BoolOp(values=arms):
                inner = list(arms)
            case ast.Name(id=name):
                bound = self._names.lookup(name, self._names.scope(expr))
                for binding in bound[1] if bound else ():
                    if binding.kind == "assign" and binding.value is not None:
                        inner.append(binding.value)
            case ast.Call(func=func):
                function = self._names.definition(func)
                if isinstance(function, ast.FunctionDef):
                    inner = list(returned(function))
        if not inner:
            yield expr
        for one in inner:
            yield from self.values(one, depth + 1)

    def _given(self, call: ast.Call, word: str) -> Iterator[ast.expr]:
        """The argument of a name, also out of a dict that is unpacked into the call."""
        for keyword in call.keywords:
            if keyword.arg == word:
                yield keyword.value
            elif keyword.arg is None:
                for value in self.values(keyword.value):
                    yield from (item for key, item in self._items(value) if key == word)

    def _items(self, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """The items of a dict that is written out."""
        if isinstance(value, ast.Dict):
            for key, item in zip(value.keys, value.values, strict=True):
                folded = self._constants.fold(key) if key is not None else None
                if isinstance(folded, str):
                    yield folded, item
        elif isinstance(value, ast.Call) and getattr(value.func, "id", None) == "dict":
            yield from ((k.arg, k.value) for k in value.keywords if k.arg is not None)

    def _keys(self, value: ast.expr) -> Iterator[str]:
        """`dict(triton=...)`, as parameters were written until jax 0.6.0."""
        for key, _ in self._items(value):
            if key in _BY_WORD:
                yield _BY_WORD[key]
            elif key in _TRITON_KEYWORDS:
                yield TRITON

    def _spoken(self, expr: ast.expr, depth: int = 0) -> Iterator[str]:
        """The backends of the modules whose names stand in an expression, or in its names."""
        for part in ast.walk(expr):
            if isinstance(part, ast.Attribute | ast.Name):
                backend = backend_of(self._names.qualified(part))
                if backend is not None:
                    yield backend
                    continue
            if isinstance(part, ast.Name | ast.Call) and depth < _DEPTH:
                for value in self.values(part):
                    if value is not part:
                        yield from self._spoken(value, depth + 1)


def returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """The expressions that a function returns itself, not those of functions inside it."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))
