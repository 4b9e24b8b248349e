"""Scopes of a module and the names that they bind, as Python sees them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_LEAVES = (ast.Name, ast.Constant, ast.alias, ast.expr_context, ast.operator, ast.cmpop)
_BINDING = (ast.stmt, ast.ExceptHandler, ast.NamedExpr, ast.match_case)
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
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


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


@dataclass(slots=True)
class Scopes:
    """What one walk through a tree finds.

    `parent` maps each node to the node around it, `scopes` each scope-making node to its
    scope, `home` the nodes at which another scope begins to the scope that evaluates them. `star`
    is true where a star import makes unresolved names unknowable.
    """

    parent: dict[ast.AST, ast.AST] = field(default_factory=dict)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    home: dict[ast.AST, Scope] = field(default_factory=dict)
    calls: list[ast.Call] = field(default_factory=list)
    star: bool = False


def read_scopes(tree: ast.Module) -> Scopes:
    """Walk a module once."""
    found = Scopes()
    _Builder(found).build(tree)
    return found


class _Builder:
    """Walks a tree once and fills the maps of `Scopes`."""

    def __init__(self, found: Scopes) -> None:
        self.found = found

    def build(self, tree: ast.Module) -> None:
        scope = Scope(tree, None, "")
        self.found.scopes[tree] = scope
        self.found.home[tree] = scope
        for statement in tree.body:
            self.visit(statement, tree, scope)

    def visit(self, node: ast.AST, parent: ast.AST, scope: Scope) -> None:
        self.found.parent[node] = parent
        if isinstance(node, _LEAVES):
            return
        if isinstance(node, _SCOPES):
            self.enter(node, scope)
            return
        if isinstance(node, ast.Call):
            self.found.calls.append(node)
        elif isinstance(node, _BINDING):
            self.bind(node, scope)
        # This is the loop that every node of every file goes through: generators would double it.
        for name in node._fields:
            child = getattr(node, name, None)
            if isinstance(child, list):
                for part in child:
                    if isinstance(part, ast.AST):
                        self.visit(part, node, scope)
            elif isinstance(child, ast.AST):
                self.visit(child, node, scope)

    def enter(self, node: ast.AST, scope: Scope) -> None:
        self.found.home[node] = scope
        name = getattr(node, "name", "<lambda>" if isinstance(node, ast.Lambda) else "<comp>")
        inside_function = isinstance(scope.node, FUNCTIONS)
        prefix = f"{scope.qualname}.<locals>." if inside_function else f"{scope.qualname}."
        own = Scope(node, scope, f"{prefix}{name}".removeprefix("."))
        self.found.scopes[node] = own
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            scope.bind(node.name, Binding("def", node))
        if isinstance(node, FUNCTIONS):
            self.function(node, scope, own)
        elif isinstance(node, ast.ClassDef):
            for part in (*node.decorator_list, *node.bases, *node.keywords):
                self.visit(part, node, scope)
            self.type_parameters(node, scope, own)
            self.body(node.body, node, own)
        else:
            self.comprehension(node, scope, own)

    def function(self, node: Function, scope: Scope, own: Scope) -> None:
        arguments = node.args
        self.found.parent[arguments] = node
        named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        stars = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        for argument in (*named, *stars):
            self.found.parent[argument] = arguments
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
        self.type_parameters(node, scope, own)
        self.body(node.body, node, own)

    def type_parameters(self, node: ast.AST, scope: Scope, own: Scope) -> None:
        """`def f[T: int]` and `class C[T]`, which Python has from 3.12 on."""
        for parameter in getattr(node, "type_params", ()):
            own.bind(parameter.name, Binding("param", parameter))
            self.visit(parameter, node, scope)

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
            self.found.home[node] = own
        self.visit(node, parent, own)

    def comprehension(self, node: ast.AST, scope: Scope, own: Scope) -> None:
        generators: list[ast.comprehension] = getattr(node, "generators", [])
        for index, generator in enumerate(generators):
            self.found.parent[generator] = node
            self.targets(generator.target, "for", generator, None, own)
            self.home(generator.target, generator, own)
            if index == 0:
                self.found.home.setdefault(generator.iter, scope)
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
                self.found.star = True
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


def defaults(arguments: ast.arguments) -> dict[ast.arg, ast.expr]:
    """The parameters that have a default, each with it."""
    named = (*arguments.posonlyargs, *arguments.args)
    last = named[len(named) - len(arguments.defaults) :]
    pairs = (
        *zip(last, arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    )
    return {parameter: default for parameter, default in pairs if default is not None}
