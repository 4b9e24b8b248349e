"""Which backend a piece of a kernel is for: what its launch, its names and its callers say."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pallas_fix.facts.allocations import argument
from pallas_fix.facts.constants import Constants
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.names import Function, Names

TPU, TRITON, MOSAIC_GPU = "tpu", "triton", "mosaic_gpu"
_BY_MODULE = {"pltpu": TPU, "plsc": TPU, "triton": TRITON, "plgpu": MOSAIC_GPU}
_BY_WORD = {"mosaic_tpu": TPU, "mosaic": TPU, "triton": TRITON, "mosaic_gpu": MOSAIC_GPU}
_TRITON_KEYWORDS = frozenset({"num_warps", "num_stages"})
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Backend:
    """The backend, or None where it is not known, and what says so (or what would)."""

    name: str | None
    why: str


class Backends:
    """The backends of the code of one module."""

    def __init__(self, names: Names, constants: Constants, launches: tuple[Launch, ...]) -> None:
        self._names = names
        self._constants = constants
        self._launches = launches

    def of(self, node: ast.AST) -> Backend:
        """The backend that the code at `node` is for.

        The launches of the kernel around it come first, then those of the functions that call
        it, then the modules whose names it uses, then those that the file imports.
        """
        functions = list(self._names.enclosing(node))
        launched = self._agreed(
            (name, "its launch")
            for function in functions
            for name in self._of_function(function, frozenset())
        )
        if launched is not None:
            return launched
        for function in reversed(functions):
            used = self._agreed((name, "what it uses") for name in self._used(function))
            if used is not None:
                return used
        imported = self._agreed((name, "what the file imports") for name in self._imported)
        return imported or Backend(None, "neither its launch nor the names around it tell")

    def of_launch(self, launch: Launch) -> str | None:
        """The backend that a launch asks for, by its parameters and memory spaces."""
        if launch.kind == "gpu_kernel":
            return MOSAIC_GPU
        found = set(self._asked(launch))
        return found.pop() if len(found) == 1 else None

    def launches_of(self, node: ast.AST) -> list[Launch]:
        """The launches whose kernel holds `node`, or calls the function that does."""
        found: list[Launch] = []
        for function in self._names.enclosing(node):
            self._collect(function, found, frozenset())
        return found

    def _agreed(self, said: Iterator[tuple[str, str]]) -> Backend | None:
        """What all say; None where nobody speaks. A contradiction is not known."""
        found = dict(said)
        if not found:
            return None
        if len(found) > 1:
            return Backend(None, f"it is launched for {' and for '.join(sorted(found))}")
        [(name, why)] = found.items()
        return Backend(name, why)

    def _of_function(self, function: Function, seen: frozenset[Function]) -> Iterator[str]:
        for launch in self._kernels.get(function, ()):
            name = self.of_launch(launch)
            if name is not None:
                yield name
        if len(seen) < _DEPTH:
            for call in self._names.callers.get(function, ()):
                for around in self._names.enclosing(call):
                    if around not in seen and around is not function:
                        yield from self._of_function(around, seen | {function})

    def _collect(self, function: Function, found: list[Launch], seen: frozenset[Function]) -> None:
        found += (one for one in self._kernels.get(function, ()) if one not in found)
        if len(seen) < _DEPTH:
            for call in self._names.callers.get(function, ()):
                for around in self._names.enclosing(call):
                    if around not in seen and around is not function:
                        self._collect(around, found, seen | {function})

    @cached_property
    def _kernels(self) -> dict[Function, list[Launch]]:
        found: dict[Function, list[Launch]] = {}
        for launch in self._launches:
            function = self._function(launch.kernel)
            if function is not None:
                found.setdefault(function, []).append(launch)
        return found

    def _function(self, kernel: ast.expr | ast.FunctionDef | None) -> Function | None:
        """The function that a launch runs, also where arguments of it are bound already."""
        if isinstance(kernel, ast.FunctionDef):
            return kernel
        origin = self._constants.origin(kernel)
        if isinstance(origin, ast.Call) and origin.args:  # functools.partial(kernel, ...)
            origin = origin.args[0]
        return self._names.definition(origin) if origin is not None else None

    def _asked(self, launch: Launch) -> Iterator[str]:
        call = launch.call
        params = self._constants.origin(argument(call, None, "compiler_params"))
        if params is not None:
            yield from self._in_params(params)
        word = self._constants.fold(argument(call, None, "backend"))
        if isinstance(word, str) and word in _BY_WORD:
            yield _BY_WORD[word]
        if any(keyword.arg in _TRITON_KEYWORDS for keyword in call.keywords):
            yield TRITON
        for part in ("grid_spec", "in_specs", "out_specs", "scratch_shapes", "mesh"):
            given = argument(call, None, part)
            if given is not None:
                yield from self._named(self._constants.origin(given) or given)

    def _in_params(self, params: ast.expr) -> Iterator[str]:
        """`pltpu.CompilerParams(...)`, or the dict that stood there until jax 0.6.0."""
        keys: list[object] = []
        if isinstance(params, ast.Call):
            name = self._names.qualified(params.func)
            if name is not None and name.partition(".")[0] in _BY_MODULE:
                yield _BY_MODULE[name.partition(".")[0]]
            keys = [keyword.arg for keyword in params.keywords]
        elif isinstance(params, ast.Dict):
            keys = [self._constants.fold(key) for key in params.keys if key is not None]
        yield from (_BY_WORD[key] for key in keys if isinstance(key, str) and key in _BY_WORD)

    def _named(self, node: ast.AST) -> Iterator[str]:
        """The backends of the modules whose names stand in some code."""
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute | ast.Name):
                module = (self._names.qualified(part) or "").partition(".")[0]
                if module in _BY_MODULE:
                    yield _BY_MODULE[module]

    def _used(self, function: Function) -> set[str]:
        return set(self._named(function))

    @cached_property
    def _imported(self) -> set[str]:
        found = set()
        for scope in self._names.scopes.values():
            for name, bindings in scope.bindings.items():
                if any(binding.kind == "import" for binding in bindings):
                    target = self._names.binding(name, scope)
                    if target is not None and target.kind == "import":
                        module = self._names.shortened(target.target).partition(".")[0]
                        if module in _BY_MODULE:
                            found.add(_BY_MODULE[module])
        return found
