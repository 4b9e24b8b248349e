"""Cases that a file declares without meaning to: its entries, its calls, its launches.

Conservative by rule: where a shape or a dtype does not follow from the text, there is no case.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from pallas_fix.verify.arguments import Array, Group, Key, Literal, Value
from pallas_fix.verify.cases import MODULE, Case
from pallas_fix.verify.folding import (
    Dtype,
    Folded,
    Function,
    Scope,
    Unknown,
    as_dtype,
    as_shape,
    fold,
    own_nodes,
)

MOST_CASES = 8
"""More cases than this say nothing new, and each costs about a second and a target."""


def derived_cases(tree: ast.Module, functions: Collection[str]) -> list[Case]:
    """The cases of a file under which the functions with these qualified names should run.

    In order: calls in the file with known shapes, functions without parameters (tests, `main`),
    launches whose block specs and dtypes are constants, and the file's top-level code.
    """
    module = _Module(tree)
    wanted = {name.partition(".")[0] for name in functions}
    found: dict[Case, None] = {}
    for cases in (module.calls, module.entries, module.launches, module.top_level):
        for case in cases(wanted):
            found.setdefault(case)
    return list(found)[:MOST_CASES]


class _Module:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.scope = Scope(tree)
        self.functions = {
            node.name: node
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and self.scope.names[node.name] == 1
        }
        self.uses = {
            name: {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
            for name, value in (*self.functions.items(), *self.scope.values.items())
        }

    def reaches(self, start: str, wanted: Collection[str]) -> bool:
        """True if one of the wanted names can be reached by names from `start`."""
        seen: set[str] = set()
        todo = [start]
        while todo:
            name = todo.pop()
            if name in wanted:
                return True
            if name not in seen:
                seen.add(name)
                todo.extend(self.uses.get(name, ()))
        return False

    def entries(self, wanted: Collection[str]) -> Iterator[Case]:
        for name, node in self.functions.items():
            args = node.args
            parameters = args.posonlyargs + args.args + args.kwonlyargs
            if parameters or args.vararg or args.kwarg or not self.reaches(name, wanted):
                continue
            if all(self.harmless(decorator) for decorator in node.decorator_list):
                yield Case(name, derived=True)

    def harmless(self, decorator: ast.expr) -> bool:
        """True for decorators that leave a function without parameters callable as it is."""
        node = decorator.func if isinstance(decorator, ast.Call) else decorator
        try:
            path = self.scope.path(node)
        except Unknown:
            return False
        marks = ("pytest.mark.skip", "pytest.mark.xfail", "pytest.mark.usefixtures")
        return path == "jax.jit" or (path.startswith("pytest.mark.") and not path.startswith(marks))

    def calls(self, wanted: Collection[str]) -> Iterator[Case]:
        for call, scope in _calls(self.tree, self.scope):
            name = self.callee(call, scope)
            if name is None or not self.reaches(name, wanted):
                continue
            try:
                args = tuple(_value(fold(arg, scope)) for arg in call.args)
                kwargs = tuple(
                    (keyword.arg, _value(fold(keyword.value, scope)))
                    for keyword in call.keywords
                    if keyword.arg
                )
            except Unknown:
                continue
            known = len(kwargs) == len(call.keywords)
            values = (*args, *(value for _, value in kwargs))
            if known and any(isinstance(value, Array) for value in values):
                yield Case(name, args, kwargs, derived=True)

    def callee(self, call: ast.Call, scope: Scope) -> str | None:
        """The top-level name that is called, directly or as `jax.jit(name)(...)`."""
        node = call.func
        if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
            try:
                if scope.path(node.func) == "jax.jit":
                    node = node.args[0]
            except Unknown:
                return None
        if not isinstance(node, ast.Name):
            return None
        inner: Scope | None = scope
        while inner and inner is not self.scope:
            if node.id in inner.names or node.id in inner.imports:
                return None
            inner = inner.outer
        return node.id if self.scope.names[node.id] == 1 else None

    def launches(self, wanted: Collection[str]) -> Iterator[Case]:
        for name, node in self.functions.items():
            if self.reaches(name, wanted) and not node.decorator_list:
                try:
                    yield Case(name, tuple(self.launch_arguments(node)), derived=True)
                except Unknown:
                    continue

    def launch_arguments(self, node: ast.FunctionDef) -> Iterator[Array]:
        """The arguments of a function that hands all of them to one launch. Raises Unknown."""
        scope = Scope(node, self.scope)
        args = node.args
        names = [arg.arg for arg in args.posonlyargs + args.args]
        if not names or args.vararg or args.kwonlyargs or args.kwarg:
            raise Unknown
        launches = [
            call
            for call in own_nodes(node.body)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Call)
            if _path(call.func.func, scope).endswith("pallas.pallas_call")
        ]
        if len(launches) != 1 or launches[0].keywords:
            raise Unknown
        shapes = _operand_shapes(launches[0].func, scope)
        operands = dict(_operand(arg, scope) for arg in launches[0].args)
        dtypes = operands | {
            name: dtype for name, dtype in _asserted_dtypes(node, scope) if not operands.get(name)
        }
        if list(operands) != names or len(shapes) != len(names):
            raise Unknown
        for name, shape in zip(names, shapes, strict=True):
            dtype = dtypes[name]
            if dtype is None:
                raise Unknown
            yield Array(dtype.short, shape)

    def top_level(self, wanted: Collection[str]) -> Iterator[Case]:
        for statement in self.tree.body:
            if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.With | ast.For):
                for node in own_nodes([statement]):
                    if isinstance(node, ast.Call) and self.runs(node, wanted):
                        yield Case(MODULE, derived=True)
                        return

    def runs(self, call: ast.Call, wanted: Collection[str]) -> bool:
        """True for a call of a function of the file, or of what a call returned."""
        if isinstance(call.func, ast.Name):
            return call.func.id in self.uses and self.reaches(call.func.id, wanted)
        names = {node.id for node in ast.walk(call.func) if isinstance(node, ast.Name)}
        return isinstance(call.func, ast.Call) and any(self.reaches(n, wanted) for n in names)


def _calls(node: ast.Module | Function, scope: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield the calls of a module or function, nested functions included, with their scopes."""
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    for child in own_nodes(body):
        if isinstance(child, ast.Call):
            yield child, scope
        elif isinstance(child, Function):
            yield from _calls(child, Scope(child, scope))
        elif isinstance(child, ast.ClassDef):
            for method in child.body:
                if isinstance(method, Function):
                    yield from _calls(method, Scope(method, scope))


def _value(folded: Folded) -> Value:
    if isinstance(folded, Array | Key):
        return folded
    if isinstance(folded, tuple):
        return Group("(", tuple(map(_value, folded)))
    if isinstance(folded, Dtype):
        raise Unknown
    return Literal(folded)


def _path(node: ast.expr, scope: Scope) -> str:
    try:
        return scope.path(node)
    except Unknown:
        return ""


def _operand(node: ast.expr, scope: Scope) -> tuple[str, Dtype | None]:
    """The parameter that an operand of a launch is, and its dtype if it is cast on the way."""
    dtype = None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "astype"
        and len(node.args) == 1
    ):
        dtype = as_dtype(fold(node.args[0], scope))
        node = node.func.value
    if isinstance(node, ast.Name) and scope.names[node.id] == 1:
        return node.id, dtype
    raise Unknown


def _asserted_dtypes(node: ast.FunctionDef, scope: Scope) -> Iterator[tuple[str, Dtype]]:
    """Yield the parameters whose dtype the function asserts: `assert x.dtype == jnp.bfloat16`."""
    for child in own_nodes(node.body):
        match child:
            case ast.Assert(
                test=ast.Compare(
                    left=ast.Attribute(value=ast.Name(id=name), attr="dtype"),
                    ops=[ast.Eq()],
                    comparators=[right],
                )
            ):
                yield name, as_dtype(fold(right, scope))


def _operand_shapes(launch: ast.expr, scope: Scope) -> list[tuple[int, ...]]:
    """The shapes of a launch's operands: block times the blocks that the grid walks over."""
    if not isinstance(launch, ast.Call):
        raise Unknown
    given = {keyword.arg: keyword.value for keyword in launch.keywords}
    if None in given or "grid_spec" in given or "in_specs" not in given:
        raise Unknown
    grid = as_shape(fold(given["grid"], scope)) if "grid" in given else ()
    specs = given["in_specs"]
    if not isinstance(specs, ast.List | ast.Tuple):
        raise Unknown
    return [_spec_shape(spec, grid, scope) for spec in specs.elts]


def _spec_shape(spec: ast.expr, grid: tuple[int, ...], scope: Scope) -> tuple[int, ...]:
    if not isinstance(spec, ast.Call) or not _path(spec.func, scope).endswith("pallas.BlockSpec"):
        raise Unknown
    given = dict(zip(("block_shape", "index_map"), spec.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in spec.keywords if keyword.arg}
    if not set(given) <= {"block_shape", "index_map", "memory_space"}:
        raise Unknown
    if "block_shape" not in given or "index_map" not in given:
        raise Unknown
    block = as_shape(fold(given["block_shape"], scope))
    index_map = given["index_map"]
    if not isinstance(index_map, ast.Lambda) or not isinstance(index_map.body, ast.Tuple):
        raise Unknown
    names = [arg.arg for arg in index_map.args.args]
    if len(names) != len(grid) or len(index_map.body.elts) != len(block):
        raise Unknown
    counts = []
    for entry in index_map.body.elts:
        if isinstance(entry, ast.Name) and entry.id in names:
            counts.append(grid[names.index(entry.id)])
        elif isinstance(entry, ast.Constant) and entry.value == 0:
            counts.append(1)
        else:
            raise Unknown
    return tuple(size * count for size, count in zip(block, counts, strict=True))
