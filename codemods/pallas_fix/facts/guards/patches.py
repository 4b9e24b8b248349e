"""What a file puts onto modules of jax, and takes off them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pallas_fix.facts.guards.objects import Objects, called
from pallas_fix.facts.names import Names, canonical

_OF_CLASS = re.compile(r"\.__\w+__$")
_SETTERS = frozenset({"setattr", "delattr", "__setattr__"})
_UPDATES = frozenset({"setdefault", "update", "pop"})
_PATCHERS = frozenset({"object", "multiple", "dict"})


@dataclass(frozen=True, slots=True)
class Patch:
    """One place that changes what jax has: the node, and the canonical names that it changes.

    `value` is what is put there, where that is written.
    """

    node: ast.AST
    names: tuple[str, ...]
    value: ast.expr | None = None


class Patches:
    """The places of one module that assign onto jax: polyfills, and the mocks of tests.

    `pl.load = load`, `setattr(pltpu, "CompilerParams", Params)`, `vars(pl)["load"] = load`,
    `sys.modules["jax.experimental.pallas.gpu"] = triton`, `monkeypatch.setattr(pl, "load", f)`,
    `mock.patch("jax.experimental.pallas.load")`. Where the name that is set is worked out, the
    strings of the loop around it are the names; where there are none, it is the whole module.
    """

    def __init__(self, names: Names, objects: Objects) -> None:
        self._names = names
        self._objects = objects

    def __iter__(self) -> Iterator[Patch]:
        for node in self._names.parent:
            match node:
                case ast.Assign(targets=targets, value=value):
                    yield from (p for t in targets for p in self._assigned(node, t, value))
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    yield from self._assigned(node, target, value)
                case ast.Delete(targets=targets):
                    yield from (p for t in targets for p in self._assigned(node, t, None))
        for call in self._names.calls:
            yield from self._called(call)

    def _assigned(
        self, node: ast.stmt, target: ast.expr, value: ast.expr | None
    ) -> Iterator[Patch]:
        match target:
            case ast.Attribute(value=owner, attr=word):
                module = self._objects.module(owner)
                if module is not None:
                    yield Patch(node, (f"{module}.{word}",), value)
            case ast.Subscript(value=ast.Attribute(attr="modules"), slice=key):
                yield from (Patch(node, (word,), value) for word in _paths(key))
            case ast.Subscript(value=owner, slice=key):
                module = self._objects.space(owner)
                if module is not None:
                    yield Patch(node, tuple(self._keys(module, key)), value)
            case ast.Tuple(elts=elements):
                for element in elements:
                    yield from self._assigned(node, element, None)

    def _called(self, call: ast.Call) -> Iterator[Patch]:
        word, args = called(call.func), call.args
        if isinstance(call.func, ast.Attribute) and word in _UPDATES:
            module = self._objects.space(call.func.value)
            if module is not None:
                named = [keyword.arg for keyword in call.keywords if keyword.arg]
                keys = (name for key in args[:1] for name in self._keys(module, key))
                yield Patch(call, (*keys, *_below(module, named)))
        elif args and (word in _SETTERS or self._is_patcher(call.func)):
            yield from self._set(call, args)

    def _set(self, call: ast.Call, args: list[ast.expr]) -> Iterator[Patch]:
        """`setattr(pl, "load", f)`, `mock.patch("jax.experimental.pallas.load")`."""
        module = self._objects.module(args[0]) or self._objects.space(args[0])
        if module is None:
            yield from (Patch(call, (path,)) for arg in args for path in _paths(arg))
        elif called(call.func) == "multiple":
            yield Patch(call, tuple(_below(module, [k.arg for k in call.keywords if k.arg])))
        elif len(args) > 1:
            yield Patch(call, tuple(self._keys(module, args[1])), args[2] if args[2:] else None)

    @staticmethod
    def _is_patcher(func: ast.expr) -> bool:
        """True for `patch`, `mock.patch` and `mock.patch.object`."""
        if isinstance(func, ast.Attribute) and func.attr in _PATCHERS:
            func = func.value
        return called(func) == "patch"

    def _keys(self, module: str, key: ast.expr) -> Iterator[str]:
        """The names that a key may be; the module itself where they cannot be seen."""
        words = list(self._strings(key))
        yield from _below(module, words) if words else (module,)

    def _strings(self, key: ast.expr) -> Iterator[str]:
        sources: list[ast.expr] = [key]
        if isinstance(key, ast.Name):
            found = self._names.lookup(key.id, self._names.scope(key))
            nodes = [binding.node for binding in found[1]] if found else []
            sources = [n.iter for n in nodes if isinstance(n, ast.For | ast.comprehension)]
            sources += [b.value for b in found[1] if b.value is not None] if found else []
        for source in sources:
            for node in ast.walk(source):
                if isinstance(node, ast.Name):
                    binding = self._names.binding(node, self._names.scope(node))
                    if binding is not None and binding.value is not None:
                        yield from _words(binding.value)
            yield from _words(source)


def _below(module: str, words: list[str]) -> list[str]:
    return [f"{module}.{word}" for word in words]


def _words(expr: ast.expr) -> Iterator[str]:
    for node in ast.walk(expr):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _paths(expr: ast.expr) -> Iterator[str]:
    return (word for word in _words(expr) if word.startswith("jax."))


def polyfilled(patches: tuple[Patch, ...]) -> frozenset[str]:
    """The canonical names that a file assigns onto modules."""
    return frozenset(canonical(_OF_CLASS.sub("", n)) for patch in patches for n in patch.names)
