"""Which object a name stands for: imports, scopes, rebinding.

Conventions such as `pl` and `pltpu` are never trusted. A name counts as resolved only where
every binding that it can have in its scope says the same thing.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from pallas_fix.edits import AddImport
from pallas_fix.facts.index import Index
from pallas_fix.facts.optional import optional
from pallas_fix.facts.paths import canonical, short
from pallas_fix.facts.scopes import FUNCTIONS, Binding, Function, Scope, read_scopes

_PUBLIC = {
    "pl": ("jax.experimental", "pallas", "pl"),
    "pltpu": ("jax.experimental.pallas", "tpu", "pltpu"),
    "plgpu": ("jax.experimental.pallas", "mosaic_gpu", "plgpu"),
    "triton": ("jax.experimental.pallas", "triton", "plt"),
    "plsc": ("jax.experimental.pallas", "tpu_sc", "plsc"),
    "fuser": ("jax.experimental.pallas", "fuser", "fuser"),
    "lax": ("jax", "lax", None),
    "jnp": ("jax", "numpy", "jnp"),
    "jax": (None, "jax", None),
    "typing": (None, "typing", None),
}
_OF_JAX = {"lax": "lax"}
"""Modules that are written as attributes of `jax` where the file has that alone."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a file writes a public name, and the import that it still needs for that."""

    text: str
    imports: tuple[AddImport, ...] = ()


class Names:
    """The scopes of one module.

    `parent` maps each node to the node around it, `scopes` each scope-making node to its
    scope; `star` is true where a star import makes unresolved names unknowable.
    """

    def __init__(self, tree: ast.Module) -> None:
        found = read_scopes(tree)
        self.tree = tree
        self.parent = found.parent
        self.scopes = found.scopes
        self.star = found.star
        self.calls = found.calls
        self._home = found.home

    @cached_property
    def index(self) -> Index:
        """The nodes of the module by kind and by word."""
        return Index.of(self.parent)

    def scope(self, node: ast.AST) -> Scope:
        """The scope in which `node` is evaluated."""
        home = self._home.get(node)
        while home is None:
            node = self.parent[node]
            home = self._home.get(node)
        return home

    def lookup(self, name: str, scope: Scope) -> tuple[Scope, list[Binding]] | None:
        """The scope that binds `name` as seen from `scope`, with all its bindings there."""
        found: Scope | None = scope
        while found is not None:
            visible = found is scope or not isinstance(found.node, ast.ClassDef)
            if visible and name in found.bindings:
                return found, found.bindings[name]
            found = found.parent
        return None

    def binding(self, name: ast.Name | str, scope: Scope) -> Binding | None:
        """The one binding of a name, or None where it has none or several.

        An import that the file can do without (`facts.optional`) is none: others care for it.
        `None` assigned beside an import (the fallback of a `try/except ImportError` around a
        module) does not count: uses of the name only make sense with the module.
        """
        text = name if isinstance(name, str) else name.id
        found = self.lookup(text, scope)
        if found is None:
            return None
        bindings = found[1]
        if len(bindings) > 1:
            imports = [b for b in bindings if b.kind == "import"]
            others = [b for b in bindings if b.kind != "import"]
            same = len({canonical(b.target) for b in imports}) == 1
            if not same or not all(_is_none(b.value) for b in others):
                return None
            bindings = imports
        return None if (bindings[0].node, text) in self.optional else bindings[0]

    @cached_property
    def optional(self) -> frozenset[tuple[ast.AST, str]]:
        """The imports that the file can do without, each with the name that it binds."""
        found = optional(self.parent)
        return frozenset((statement, alias.asname or alias.name) for statement, alias in found)

    def qualified(self, expr: ast.AST) -> str | None:
        """The canonical name that an expression stands for, or None where that is not known."""
        return self._resolved(expr, canonical)

    def path(self, expr: ast.AST) -> str | None:
        """The dotted path by which the file's imports reach what an expression stands for.

        Unlike `qualified` it is as it was imported: `jax.experimental.pallas.gpu.load`.
        """
        return self._resolved(expr, str)

    def _resolved(self, expr: ast.AST, shown: Callable[[str], str], depth: int = 0) -> str | None:
        if isinstance(expr, ast.Attribute):
            base = self._resolved(expr.value, shown, depth)
            return None if base is None else shown(f"{base}.{expr.attr}")
        if not isinstance(expr, ast.Name) or depth > 8:
            return None
        binding = self.binding(expr, self.scope(expr))
        if binding is None:
            return None
        if binding.kind == "import":
            return shown(binding.target)
        if binding.kind == "assign" and isinstance(binding.value, ast.Name | ast.Attribute):
            return self._resolved(binding.value, shown, depth + 1)
        return None

    def public(self, expr: ast.AST) -> str | None:
        """The short name of a public jax name, members of enums kept: `pltpu.TPUMemorySpace.ANY`.

        Names of private modules, and of other packages, come out as their whole path.
        """
        path = self.path(expr)
        return None if path is None else self.shortened(path)

    @staticmethod
    def shortened(path: str) -> str:
        """The short name for the path of a public jax name; any other path as it is."""
        return path if path.startswith("jax._src.") else short(path)

    def definition(self, expr: ast.AST, depth: int = 0) -> Function | None:
        """The function of this module that an expression names, if there is exactly one."""
        if isinstance(expr, ast.Lambda):
            return expr
        if depth > 8:
            return None
        if isinstance(expr, ast.Attribute):
            return self._method(expr)
        if not isinstance(expr, ast.Name):
            return None
        binding = self.binding(expr, self.scope(expr))
        if binding is None:
            return None
        if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return binding.node
        if binding.kind == "assign" and binding.value is not None:
            return self.definition(binding.value, depth + 1)
        return None

    def _method(self, expr: ast.Attribute) -> Function | None:
        if not isinstance(expr.value, ast.Name):
            return None
        owner: Scope | None = None
        binding = self.binding(expr.value, self.scope(expr))
        if binding is not None and isinstance(binding.node, ast.ClassDef):
            owner = self.scopes[binding.node]
        elif expr.value.id in ("self", "cls") and binding is not None and binding.kind == "param":
            found = self.lookup(expr.value.id, self.scope(expr))
            above = found[0].parent if found else None
            owner = above if above and isinstance(above.node, ast.ClassDef) else None
        bindings = owner.bindings.get(expr.attr, []) if owner else []
        if len(bindings) == 1 and isinstance(bindings[0].node, ast.FunctionDef):
            return bindings[0].node
        return None

    def enclosing(self, node: ast.AST) -> Iterator[Function]:
        """The functions around a node, innermost first; a decorator is not inside its function."""
        scope: Scope | None = self.scope(node)
        while scope is not None:
            if isinstance(scope.node, FUNCTIONS):
                yield scope.node
            scope = scope.parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that holds a node (itself, if it is one)."""
        while not isinstance(node, ast.stmt):
            node = self.parent[node]
        return node

    @cached_property
    def callers(self) -> dict[Function, list[ast.Call]]:
        """The calls of each function of the module, as far as names tell."""
        found: dict[Function, list[ast.Call]] = {}
        for call in self.calls:
            function = self.definition(call.func)
            if function is not None:
                found.setdefault(function, []).append(call)
        return found

    def at_import(self, node: ast.AST) -> bool:
        """True for code that runs while the module is imported, outside of all functions."""
        return next(self.enclosing(node), None) is None

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements in which a statement stands."""
        for _, value in ast.iter_fields(self.parent[statement]):
            if isinstance(value, list) and statement in value:
                return value
        return []

    def qualname(self, node: ast.AST) -> str:
        """`__qualname__` of the scope in which a node is evaluated; `<module>` at the top."""
        return self.scope(node).qualname or "<module>"

    @cached_property
    def _identifiers(self) -> set[str]:
        found = set(self.scopes[self.tree].bindings)
        for scope in self.scopes.values():
            found.update(scope.bindings)
        return found | {node.id for node in self.index.all(ast.Name)}

    def fresh(self, base: str) -> str:
        """A name like `base` that nothing in the module uses."""
        name, count = base, 1
        while name in self._identifiers or keyword.iskeyword(name):
            count += 1
            name = f"{base}_{count}"
        return name

    def spell(self, name: str, at: ast.AST) -> Spelling:
        """How to write the canonical `name` at a place: by the file's own alias if it has one.

        Otherwise by the usual alias, with the import that the file then needs.
        """
        module, _, rest = name.partition(".")
        scope: Scope | None = self.scope(at)
        start = scope
        while scope is not None:
            for alias, bindings in scope.bindings.items():
                if not any(b.kind == "import" for b in bindings) or start is None:
                    continue
                target = self._import_target(alias, start)
                if target == name:
                    return Spelling(alias)
                if target == module and rest:
                    return Spelling(f"{alias}.{rest}")
            scope = scope.parent
        dotted = self._dotted(module, at)
        if dotted is not None:
            return Spelling(f"{dotted}.{rest}")
        if module in _OF_JAX and self._import_target("jax", self.scope(at)) == "jax":
            return Spelling(f"jax.{_OF_JAX[module]}.{rest}")
        package, inner, usual = _PUBLIC[module]
        alias = usual or inner
        while start is not None and self.lookup(alias, start) is not None:
            alias = f"_{alias}"
        shown = None if alias == inner else alias
        if package is None:
            return Spelling(f"{alias}.{rest}", (AddImport(inner, None, shown),))
        if module == "jnp":
            return Spelling(f"{alias}.{rest}", (AddImport("jax.numpy", None, alias),))
        return Spelling(f"{alias}.{rest}", (AddImport(package, inner, shown),))

    def _import_target(self, alias: str, scope: Scope) -> str | None:
        binding = self.binding(alias, scope)
        return canonical(binding.target) if binding and binding.kind == "import" else None

    def _dotted(self, module: str, at: ast.AST) -> str | None:
        """`jax.experimental.pallas.tpu` where `import` of that path makes it a usable prefix."""
        package, inner, _ = _PUBLIC[module]
        path = f"{package}.{inner}" if package else inner
        for node in self.index.all(ast.Import):
            if self.scope(node).parent is None:
                for item in node.names:
                    usable = item.asname is None and f"{item.name}.".startswith(f"{path}.")
                    if usable and self._import_target(path.split(".")[0], self.scope(at)):
                        return path
        return None


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


__all__ = ["Function", "Names", "Scope", "Spelling", "canonical"]
