"""Which object a name stands for: imports, scopes, rebinding.

Conventions such as `pl` and `pltpu` are never trusted. A name counts as resolved only where
every binding that it can have in its scope says the same thing.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pallas_fix.edits import AddImport

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ScopeNode = ast.Module | ast.ClassDef | Function | ast.ListComp | ast.SetComp | ast.DictComp
_SCOPES = (
    ast.Module,
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

# The public modules and the private ones that they re-export (jax/experimental/pallas/*.py).
_MODULES = (
    (r"jax\.experimental\.pallas\.tpu", "pltpu"),
    (r"jax\.experimental\.pallas\.mosaic_gpu", "plgpu"),
    (r"jax\.experimental\.pallas\.(?:triton|gpu)", "triton"),
    (r"jax\.experimental\.pallas\.tpu_sc", "plsc"),
    (r"jax\.experimental\.pallas", "pl"),
    (r"jax\._src\.pallas\.mosaic\.sc_\w+", "plsc"),
    (r"jax\._src\.pallas\.mosaic_gpu\.\w+", "plgpu"),
    (r"jax\._src\.pallas\.mosaic\.\w+", "pltpu"),
    (r"jax\._src\.pallas\.triton\.\w+", "triton"),
    (r"jax\._src\.pallas\.(?!mosaic|triton)\w+", "pl"),
    (r"jax\.numpy", "jnp"),
    (r"jax\.lax", "lax"),
    (r"numpy", "np"),
)
_PREFIX = re.compile("|".join(f"(?P<m{i}>{p}(?=\\.|$))" for i, (p, _) in enumerate(_MODULES)))
_SAME = {
    "pltpu.AccMemorySpace": "pltpu.ACC",
    "plgpu.WGMMAAccumulatorRef": "plgpu.ACC",
    "pl.ANY": "pl.MemorySpace.ANY",
}
_SPACE_CLASS = re.compile(r"(pltpu|plgpu)\.(?:TPU|GPU)?MemorySpace\.(\w+)$")
_PUBLIC = {
    "pl": ("jax.experimental", "pallas", "pl"),
    "pltpu": ("jax.experimental.pallas", "tpu", "pltpu"),
    "plgpu": ("jax.experimental.pallas", "mosaic_gpu", "plgpu"),
    "jnp": ("jax", "numpy", "jnp"),
    "jax": (None, "jax", None),
}


def canonical(dotted: str) -> str:
    """The short name of a dotted path: `jax.experimental.pallas.tpu.VMEM` is `pltpu.VMEM`.

    Private spellings (`jax._src.pallas.mosaic.core.AccMemorySpace`) and members of the memory
    space enums (`pltpu.MemorySpace.VMEM`) come out as the public name.
    """
    match = _PREFIX.match(dotted)
    if match is not None and match.lastgroup is not None:
        dotted = _MODULES[int(match.lastgroup[1:])][1] + dotted[match.end() :]
    member = _SPACE_CLASS.fullmatch(dotted)
    if member is not None and member[2].isupper() and member[2] not in _INVENTED:
        dotted = f"{member[1]}.{member[2]}"
    return _SAME.get(dotted, dotted)


# Members that no jax has ever had: kept apart, so that a rule can speak of them.
_INVENTED = frozenset({"ACC", "ACCUMULATOR", "ACCUM"})


@dataclass(slots=True)
class Binding:
    """One way in which a scope binds a name."""

    kind: str
    node: ast.AST
    value: ast.expr | None = None
    target: str = ""


@dataclass(slots=True)
class Scope:
    """A module, class, function, lambda or comprehension, and the names that it binds."""

    node: ast.AST
    parent: Scope | None
    qualname: str
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer: dict[str, str] = field(default_factory=dict)

    def bind(self, name: str, binding: Binding) -> None:
        scope = self
        if self.outer.get(name) == "global":
            while scope.parent is not None:
                scope = scope.parent
        elif self.outer.get(name) == "nonlocal" and self.parent is not None:
            self.parent.bind(name, binding)
            return
        scope.bindings.setdefault(name, []).append(binding)


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
        self.tree = tree
        self.parent: dict[ast.AST, ast.AST] = {}
        self.scopes: dict[ast.AST, Scope] = {}
        self.star = False
        self.calls: list[ast.Call] = []
        self._home: dict[ast.AST, Scope] = {}
        _Builder(self).build(tree)

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
            if same and all(_is_none(b.value) for b in others):
                return imports[0]
            return None
        return bindings[0]

    def qualified(self, expr: ast.AST, depth: int = 0) -> str | None:
        """The canonical name that an expression stands for, or None where that is not known."""
        if isinstance(expr, ast.Attribute):
            base = self.qualified(expr.value, depth)
            return None if base is None else canonical(f"{base}.{expr.attr}")
        if not isinstance(expr, ast.Name) or depth > 8:
            return None
        binding = self.binding(expr, self.scope(expr))
        if binding is None:
            return None
        if binding.kind == "import":
            return canonical(binding.target)
        if binding.kind == "assign" and isinstance(binding.value, ast.Name | ast.Attribute):
            return self.qualified(binding.value, depth + 1)
        return None

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
            if isinstance(scope.node, _FUNCTIONS):
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

    def qualname(self, node: ast.AST) -> str:
        """`__qualname__` of the scope in which a node is evaluated; `<module>` at the top."""
        return self.scope(node).qualname or "<module>"

    @cached_property
    def _identifiers(self) -> set[str]:
        found = set(self.scopes[self.tree].bindings)
        for scope in self.scopes.values():
            found.update(scope.bindings)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
        return found

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
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import) and self.scope(node).parent is None:
                for item in node.names:
                    usable = item.asname is None and f"{item.name}.".startswith(f"{path}.")
                    if usable and self._import_target(path.split(".")[0], self.scope(at)):
                        return path
        return None


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


class _Builder:
    """Walks a tree once and fills the maps of `Names`."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def build(self, tree: ast.Module) -> None:
        scope = Scope(tree, None, "")
        self.names.scopes[tree] = scope
        self.names._home[tree] = scope
        for statement in tree.body:
            self.visit(statement, tree, scope)

    def visit(self, node: ast.AST, parent: ast.AST, scope: Scope) -> None:
        self.names.parent[node] = parent
        if isinstance(node, _SCOPES):
            self.enter(node, scope)
            return
        if isinstance(node, ast.Call):
            self.names.calls.append(node)
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.NamedExpr | ast.match_case):
            self.bind(node, scope)
        for child in ast.iter_child_nodes(node):
            self.visit(child, node, scope)

    def enter(self, node: ast.AST, scope: Scope) -> None:
        self.names._home[node] = scope
        name = getattr(node, "name", "<lambda>" if isinstance(node, ast.Lambda) else "<comp>")
        inside_function = isinstance(scope.node, _FUNCTIONS)
        prefix = f"{scope.qualname}.<locals>." if inside_function else f"{scope.qualname}."
        own = Scope(node, scope, f"{prefix}{name}".removeprefix("."))
        self.names.scopes[node] = own
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope.bind(node.name, Binding("def", node))
        if isinstance(node, _FUNCTIONS):
            self.function(node, scope, own)
        elif isinstance(node, ast.ClassDef):
            for part in (*node.decorator_list, *node.bases, *node.keywords):
                self.visit(part, node, scope)
            self.body(node.body, node, own)
        else:
            self.comprehension(node, scope, own)

    def function(self, node: Function, scope: Scope, own: Scope) -> None:
        arguments = node.args
        self.names.parent[arguments] = node
        named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        stars = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        for argument in (*named, *stars):
            self.names.parent[argument] = arguments
            kind = "param" if argument in named else "star"
            own.bind(argument.arg, Binding(kind, argument))
            if argument.annotation is not None:
                self.visit(argument.annotation, argument, scope)
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default, arguments, scope)
        if isinstance(node, ast.Lambda):
            self.home(node.body, node, own)
            return
        for part in (*node.decorator_list, node.returns):
            if part is not None:
                self.visit(part, node, scope)
        self.body(node.body, node, own)

    def body(self, statements: list[ast.stmt], node: ast.AST, own: Scope) -> None:
        for statement in statements:
            for inner in _own_statements(statement):
                if isinstance(inner, ast.Global | ast.Nonlocal):
                    kind = "global" if isinstance(inner, ast.Global) else "nonlocal"
                    own.outer.update(dict.fromkeys(inner.names, kind))
        for statement in statements:
            self.home(statement, node, own)

    def home(self, node: ast.AST, parent: ast.AST, own: Scope) -> None:
        """Visit a node that starts a new evaluation scope."""
        if not isinstance(node, _SCOPES):
            self.names._home[node] = own
        self.visit(node, parent, own)

    def comprehension(self, node: ast.AST, scope: Scope, own: Scope) -> None:
        generators: list[ast.comprehension] = getattr(node, "generators", [])
        for index, generator in enumerate(generators):
            self.names.parent[generator] = node
            self.targets(generator.target, "for", generator, None, own)
            self.home(generator.target, generator, own)
            if index == 0:
                self.names._home.setdefault(generator.iter, scope)
                self.visit(generator.iter, generator, scope)
            else:
                self.home(generator.iter, generator, own)
            for test in generator.ifs:
                self.home(test, generator, own)
        for part in ("elt", "key", "value"):
            child = getattr(node, part, None)
            if child is not None:
                self.home(child, node, own)

    def bind(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Import():
                for item in node.names:
                    target = item.name if item.asname else item.name.split(".")[0]
                    alias = item.asname or target
                    scope.bind(alias, Binding("import", node, None, target))
            case ast.ImportFrom():
                self.import_from(node, scope)
            case ast.Assign():
                for assigned in node.targets:
                    self.targets(assigned, "assign", node, node.value, scope)
            case ast.AnnAssign() if node.value is not None:
                self.targets(node.target, "assign", node, node.value, scope)
            case ast.AugAssign():
                self.targets(node.target, "augassign", node, None, scope)
            case ast.NamedExpr():
                self.targets(node.target, "assign", node, node.value, scope)
            case ast.For() | ast.AsyncFor():
                self.targets(node.target, "for", node, None, scope)
            case ast.With() | ast.AsyncWith():
                for with_item in node.items:
                    if with_item.optional_vars is not None:
                        self.targets(with_item.optional_vars, "with", node, None, scope)
            case ast.Delete():
                for deleted in node.targets:
                    self.targets(deleted, "del", node, None, scope)
            case ast.ExceptHandler() if node.name:
                scope.bind(node.name, Binding("except", node))
            case ast.match_case():
                for inner in ast.walk(node.pattern):
                    captured = getattr(inner, "name", None) or getattr(inner, "rest", None)
                    if isinstance(captured, str):
                        scope.bind(captured, Binding("match", node))
            case _:
                pass

    def import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        base = "." * node.level + (node.module or "")
        for item in node.names:
            if item.name == "*":
                self.names.star = True
            else:
                target = f"{base}.{item.name}"
                scope.bind(item.asname or item.name, Binding("import", node, None, target))

    def targets(
        self, target: ast.expr, kind: str, node: ast.AST, value: ast.expr | None, scope: Scope
    ) -> None:
        """Bind each name of an assignment target; only a plain name keeps its value."""
        if isinstance(target, ast.Name):
            scope.bind(target.id, Binding(kind, node, value))
        elif isinstance(target, ast.Starred):
            self.targets(target.value, "unpack", node, None, scope)
        elif isinstance(target, ast.Tuple | ast.List):
            pairs: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                starred = any(isinstance(e, ast.Starred) for e in (*value.elts, *target.elts))
                pairs = pairs if starred else list(value.elts)
            for element, part in zip(target.elts, pairs, strict=True):
                self.targets(element, kind if part is not None else "unpack", node, part, scope)


def _own_statements(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and the statements in its blocks, without those of nested scopes."""
    yield statement
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _own_statements(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            for inner in child.body:
                yield from _own_statements(inner)
