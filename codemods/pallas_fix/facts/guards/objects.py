"""Which expressions are jax, a module of it or something in it, as far as guards care.

Wider than `Names.path`, which knows a name only where all its bindings agree: a name that may be
jax is enough for a question about it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.facts.guards.words import is_of_shims
from pallas_fix.facts.names import Names
from pallas_fix.facts.paths import whole
from pallas_fix.facts.scopes import Binding

_PALLAS = frozenset({"pl", "pltpu", "plgpu", "triton", "plsc"})
_BRINGERS = frozenset({"getattr", "import_module", "__import__", "importorskip"})
_USUAL = frozenset({"jax", "pl", "pltpu", "plgpu"})


class Objects:
    """The objects of jax in one module."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def is_jax(self, expr: ast.expr, depth: int = 0) -> bool:
        """True for an expression that may be jax, or come from it or from a module of shims."""
        if depth > 6:
            return False
        path = self._names.path(expr)
        if path is not None:
            return path.partition(".")[0] in ("jax", "jaxlib") or is_of_shims(path)
        match expr:
            case ast.Name():
                found = self._names.lookup(expr.id, self._names.scope(expr))
                if found is None:
                    return expr.id in _USUAL
                return any(self._is_bound(b, expr.id, depth) for b in found[1])
            case ast.Attribute(value=value):
                return self.is_jax(value, depth + 1)
            case ast.Call(func=func, args=[first, *_]) if called(func) in _BRINGERS:
                return _is_path(first) or self.is_jax(first, depth + 1)
            case ast.Subscript(slice=index):
                return _is_path(index)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_jax(body, depth + 1) or self.is_jax(orelse, depth + 1)
            case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
                return any(self.is_jax(value, depth + 1) for value in values)
        return False

    def module(self, expr: ast.expr, depth: int = 0) -> str | None:
        """The dotted path of a module of jax, also where it is imported by a string."""
        path = self._names.path(expr)
        if path is not None or depth > 4:
            last = (path or "").rpartition(".")[2]
            inside = path is not None and path.partition(".")[0] == "jax"
            return path if inside else (whole(last) if last in _USUAL else None)
        match expr:
            case ast.Name():
                found = self._names.lookup(expr.id, self._names.scope(expr))
                values = [b.value for b in found[1] if b.value is not None] if found else []
                return next(filter(None, (self.module(v, depth + 1) for v in values)), None)
            case ast.Call(func=func, args=[ast.Constant(value=str(text)), *_]):
                return text if called(func) in _BRINGERS and _is_path(expr.args[0]) else None
            case ast.Subscript(slice=ast.Constant(value=str(text))):
                return text if _is_path(expr.slice) else None
        return None

    def space(self, expr: ast.expr) -> str | None:
        """The module whose names `vars(pl)` or `pl.__dict__` are."""
        match expr:
            case ast.Call(func=ast.Name(id="vars"), args=[owner]):
                return self.module(owner)
            case ast.Attribute(value=owner, attr="__dict__"):
                return self.module(owner)
        return None

    def passed(self, binding: Binding, name: str) -> Iterator[ast.expr]:
        """What the file's own calls pass for a parameter."""
        arguments = self._names.parent.get(binding.node)
        function = self._names.parent.get(arguments) if arguments else None
        if not isinstance(function, ast.FunctionDef | ast.Lambda):
            return
        named = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        for call in self._names.callers.get(function, ()):
            bound = isinstance(call.func, ast.Attribute) and named[:1] in (["self"], ["cls"])
            place = named.index(name) - bound if name in named else len(call.args)
            if 0 <= place < len(call.args):
                yield call.args[place]
            yield from (keyword.value for keyword in call.keywords if keyword.arg == name)

    def _is_pallas(self, expr: ast.expr) -> bool:
        path = self._names.public(expr) or ""
        return path == "jax" or path.partition(".")[0] in _PALLAS

    def _is_bound(self, binding: Binding, name: str, depth: int) -> bool:
        if binding.kind == "import":
            return binding.target.partition(".")[0] in ("jax", "jaxlib")
        if binding.kind == "param":
            return any(map(self._is_pallas, self.passed(binding, name)))
        value = binding.value
        if isinstance(binding.node, ast.For | ast.comprehension):
            value = binding.node.iter
        return value is not None and self.is_jax(value, depth + 1)


def called(func: ast.expr) -> str | None:
    """The last word of what is called: `patch` of `mock.patch`."""
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", None)


def _is_path(expr: ast.expr) -> bool:
    """True for a string that names jax or a module of it."""
    if not isinstance(expr, ast.Constant) or not isinstance(expr.value, str):
        return False
    return expr.value.partition(".")[0] in ("jax", "jaxlib")
