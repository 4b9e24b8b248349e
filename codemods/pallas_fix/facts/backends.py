"""Which backend a piece of a kernel is for: what its launch, its names and its callers say."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pallas_fix.facts.asked import MOSAIC_GPU, TPU, TRITON, Asked, backend_of
from pallas_fix.facts.constants import Constants
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function, Names

_ACCESSES = frozenset({"pl.load", "pl.store", "pl.swap"})
_ONLY_TRITON = frozenset({"cache_modifier", "eviction_policy", "volatile"})
_WRAPPERS = frozenset({"functools.partial", "jax.jit", "jax.named_call", "jax.checkpoint"})
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Backend:
    """The backend, or None where it is not known; what says so, and what would decide it."""

    name: str | None
    why: str
    decides: str = ""


class Backends:
    """The backends of the code of one module."""

    def __init__(self, names: Names, constants: Constants, launches: tuple[Launch, ...]) -> None:
        self._names = names
        self._asked = Asked(names, constants)
        self._launches = launches
        self._by_launch: dict[Launch, set[str]] = {}
        self._by_function: dict[Function, set[str]] = {}

    def of(self, node: ast.AST) -> Backend:
        """The backend that the code at `node` is for.

        The launches of the kernel around it come first, also those of kernels that call or hand on
        the function that holds it; then the modules whose names the function uses; then those
        that its callers and their other functions use; then those that the file imports.
        """
        functions = list(self._names.enclosing(node))
        above = self._reached(functions, self._users)
        launches = [one for function in above for one in self._kernels.get(function, ())]
        asked = {name for one in launches for name in self._of_launch(one)}
        for found, verb in self._evidence(functions, above, asked):
            if found is asked and len(asked) > 1:
                # Launched for several: what only one of them has in the kernel decides.
                own = (self._used(one) for one in functions if one not in self._hosts)
                found = asked & set().union(*own) or asked
            if len(found) > 1:
                why = f"it {verb} for {' and for '.join(sorted(found))}"
                return Backend(None, why, _decides(launches))
            if found:
                [name] = found
                return Backend(name, f"it {verb} for {name}")
        why = "neither its launch nor the names around it tell"
        return Backend(None, why, _decides(launches))

    def _evidence(
        self, functions: list[Function], above: list[Function], asked: set[str]
    ) -> Iterator[tuple[set[str], str]]:
        """What speaks for backends, the strong before the weak; each is asked only if needed."""
        yield asked, "is launched"
        for function in functions:
            yield self._used(function), "has names that are only"
        yield self._used_by(above), "belongs to functions with names that are only"
        yield self._imported, "stands in a file with imports only"

    def by_names(self, node: ast.AST) -> str | None:
        """The backend by the names around `node` alone, whatever its launches ask for."""
        functions = list(self._names.enclosing(node))
        above = self._reached(functions, self._users)
        spoken = (found for found, _ in self._evidence(functions, above, set()) if found)
        found = next(spoken, set())
        return next(iter(found)) if len(found) == 1 else None

    def of_launch(self, launch: Launch) -> str | None:
        """The backend that a launch asks for, by its parameters and memory spaces."""
        found = self._of_launch(launch)
        return next(iter(found)) if len(found) == 1 else None

    def launches_of(self, node: ast.AST) -> list[Launch]:
        """The launches whose kernel holds `node`, or calls the function that does."""
        found: list[Launch] = []
        for function in self._reached(list(self._names.enclosing(node)), self._users):
            found += (one for one in self._kernels.get(function, ()) if one not in found)
        return found

    def _of_launch(self, launch: Launch) -> set[str]:
        if launch not in self._by_launch:
            self._by_launch[launch] = self._asked.backends(launch)
        return self._by_launch[launch]

    def _reached(
        self, functions: list[Function], by: dict[Function, list[Function]]
    ) -> list[Function]:
        """The functions, and those that they lead to, the near ones first."""
        found, layer = list(functions), functions
        for _ in range(_DEPTH):
            layer = [
                other
                for function in layer
                for other in (() if function in self._hosts else by.get(function, ()))
            ]
            layer = [one for one in dict.fromkeys(layer) if one not in found]
            found += layer
        return found

    @cached_property
    def _hosts(self) -> set[Function]:
        """The functions that launch kernels: what they use says little of the kernels."""
        return {
            function for launch in self._launches for function in self._names.enclosing(launch.call)
        }

    @cached_property
    def _users(self) -> dict[Function, list[Function]]:
        """The functions in whose code each function is named: they call it, or hand it on."""
        named = {node.name for node in ast.walk(self._names.tree) if isinstance(node, _DEFS)}
        found: dict[Function, list[Function]] = {}
        for node in ast.walk(self._names.tree):
            word = getattr(node, "id", getattr(node, "attr", None))
            if word not in named or not isinstance(node, ast.Name | ast.Attribute):
                continue
            function = self._names.definition(node)
            if function is not None:
                users = found.setdefault(function, [])
                around = self._names.enclosing(node)
                users += (one for one in around if one is not function and one not in users)
        return found

    @cached_property
    def _used_in(self) -> dict[Function, list[Function]]:
        found: dict[Function, list[Function]] = {}
        for function, users in self._users.items():
            for user in users:
                found.setdefault(user, []).append(function)
        return found

    @cached_property
    def _kernels(self) -> dict[Function, list[Launch]]:
        found: dict[Function, list[Launch]] = {}
        for launch in self._launches:
            for function in self._functions(launch.kernel):
                launches = found.setdefault(function, [])
                if launch not in launches:
                    launches.append(launch)
        return found

    def _functions(
        self, kernel: ast.expr | ast.FunctionDef | None, depth: int = 0
    ) -> Iterator[Function]:
        """The functions that a launch may run: with arguments bound, or made by another."""
        if isinstance(kernel, ast.FunctionDef):
            yield kernel
            return
        for value in self._asked.values(kernel) if kernel is not None else ():
            function = self._names.definition(value)
            if function is not None:
                yield function
            elif isinstance(value, ast.Call) and self._wraps(value) and depth < _DEPTH:
                yield from self._functions(value.args[0], depth + 1)

    def _wraps(self, call: ast.Call) -> bool:
        return bool(call.args) and self._names.qualified(call.func) in _WRAPPERS

    def _used(self, function: Function) -> set[str]:
        """The backends of the names that a function uses, and of what it asks of its accesses."""
        if function not in self._by_function:
            found: set[str] = set()
            for part in ast.walk(function):
                if isinstance(part, ast.Attribute | ast.Name):
                    backend = backend_of(self._names.qualified(part))
                    found |= {backend} if backend is not None else set()
                elif isinstance(part, ast.Call) and self._asks_of_triton(part):
                    found.add(TRITON)
            self._by_function[function] = found
        return self._by_function[function]

    def _asks_of_triton(self, call: ast.Call) -> bool:
        """True for an access with a cache hint, which the other backends never had."""
        hints = (k.value for k in call.keywords if k.arg in _ONLY_TRITON)
        given = any(not isinstance(v, ast.Constant) or v.value not in (None, False) for v in hints)
        return given and self._names.qualified(call.func) in _ACCESSES

    def _used_by(self, above: list[Function]) -> set[str]:
        """The backends of what the kernels above some code use, with all their functions."""
        kernels = [one for one in above if one not in self._hosts]
        reached = self._reached(kernels, self._used_in)
        return {name for function in reached for name in self._used(function)}

    @cached_property
    def _imported(self) -> set[str]:
        found: set[str] = set()
        for scope in self._names.scopes.values():
            for name, bindings in scope.bindings.items():
                for node in (one.node for one in bindings if one.kind == "import"):
                    target = self._names.binding(name, scope)
                    if target is None or target.kind != "import":
                        continue
                    paths = [target.target]
                    if isinstance(node, ast.Import):  # also `import a.b`, which binds `a`
                        paths += [alias.name for alias in node.names]
                    spoken = (backend_of(self._names.shortened(path)) for path in paths)
                    found.update(backend for backend in spoken if backend is not None)
        return found


def _decides(launches: list[Launch]) -> str:
    params = "(pltpu.CompilerParams or triton.CompilerParams)"
    if not launches:
        return f"give compiler_params= to the launch {params}, or import the one backend only"
    lines = sorted({launch.call.lineno for launch in launches})
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines))}"
    return f"give compiler_params= to the launch in {where} {params}"


__all__ = ["MOSAIC_GPU", "TPU", "TRITON", "Backend", "Backends"]
