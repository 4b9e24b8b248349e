"""Cases that a file declares without meaning to: its entries, its calls, its launches.

Conservative by rule: where a shape or a dtype does not follow from the text, there is no case.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.launches import Launch
from pallas_fix.verify.arguments import Array
from pallas_fix.verify.cases import MODULE, Case
from pallas_fix.verify.folding import Folding, Unknown, without_cast

MOST_CASES = 8
"""More cases than this say nothing new, and each costs about a second and a target."""


def derived_cases(facts: Facts, functions: Collection[str]) -> list[Case]:
    """The cases of a file under which the functions with these qualified names should run.

    In order: calls in the file with known shapes, functions without parameters (tests, `main`),
    launches whose block specs and dtypes are constants, and the file's top-level code.
    """
    module = _Module(facts)
    wanted = {name.partition(".")[0] for name in functions}
    found: dict[Case, None] = {}
    for cases in (module.calls, module.entries, module.launches, module.top_level):
        for case in cases(wanted):
            found.setdefault(case)
    return list(found)[:MOST_CASES]


class _Module:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.names = facts.names
        self.folding = Folding(facts.names)
        self.top = facts.names.scopes[facts.tree]
        self.functions: dict[str, ast.FunctionDef] = {}
        self.uses: dict[str, set[str]] = {}
        for name, bindings in self.top.bindings.items():
            nodes = [b.node if b.kind == "def" else b.value for b in bindings]
            self.uses[name] = {used for node in nodes if node for used in self.globals(node)}
            for node in nodes if len(nodes) == 1 else ():
                if isinstance(node, ast.FunctionDef) and self.names.parent[node] is facts.tree:
                    self.functions[name] = node

    def globals(self, node: ast.AST) -> Iterator[str]:
        """Yield the names of the module's own scope that are used inside a node."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and self.is_global(inner):
                yield inner.id

    def is_global(self, name: ast.Name) -> bool:
        found = self.names.lookup(name.id, self.names.scope(name))
        return found is not None and found[0] is self.top

    def inside(self, node: ast.AST, function: ast.FunctionDef | None) -> bool:
        """True for what runs with a function itself (None: with the module), not when called."""
        return next(self.names.enclosing(node), None) is function

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
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = self.names.qualified(called) or ""
        marks = ("pytest.mark.skip", "pytest.mark.xfail", "pytest.mark.usefixtures")
        return name == "jax.jit" or (name.startswith("pytest.mark.") and not name.startswith(marks))

    def calls(self, wanted: Collection[str]) -> Iterator[Case]:
        for call in self.names.calls:
            name = self.callee(call.func)
            if name is None or not self.reaches(name, wanted):
                continue
            try:
                args = tuple(self.folding.argument(arg) for arg in call.args)
                kwargs = tuple(
                    (keyword.arg, self.folding.argument(keyword.value))
                    for keyword in call.keywords
                    if keyword.arg
                )
            except Unknown:
                continue
            known = len(kwargs) == len(call.keywords)
            values = (*args, *(value for _, value in kwargs))
            if known and any(isinstance(value, Array) for value in values):
                yield Case(name, args, kwargs, derived=True)

    def callee(self, func: ast.expr) -> str | None:
        """The top-level name that is called: by itself, by a local name, in `jax.jit(name)`."""
        node: ast.expr | None = func
        for _ in range(4):
            if isinstance(node, ast.Name) and self.is_global(node):
                binding = self.names.binding(node, self.top)
                own = binding is not None and binding.kind in ("def", "assign")
                return node.id if own else None
            node = self.folding.constants.origin(node)
            match node:
                case ast.Call(func=jit, args=[inner], keywords=[]):
                    node = inner if self.names.qualified(jit) == "jax.jit" else None
        return None

    def launches(self, wanted: Collection[str]) -> Iterator[Case]:
        for name, node in self.functions.items():
            if self.reaches(name, wanted) and not node.decorator_list:
                try:
                    yield Case(name, tuple(self.launch_arguments(node)), derived=True)
                except Unknown:
                    continue

    def launch_arguments(self, node: ast.FunctionDef) -> Iterator[Array]:
        """The arguments of a function that hands all of them to one launch. Raises Unknown."""
        args = node.args
        names = [arg.arg for arg in args.posonlyargs + args.args]
        if not names or args.vararg or args.kwonlyargs or args.kwarg:
            raise Unknown
        launches = [launch for launch in self.facts.launches if self.inside(launch.call, node)]
        if len(launches) != 1 or launches[0].kind != "pallas_call":
            raise Unknown
        shapes = self.operand_shapes(launches[0])
        operands = dict(map(self.operand, self.operands(launches[0], node)))
        dtypes = operands | {
            name: dtype for name, dtype in self.asserted(node) if not operands.get(name)
        }
        if list(operands) != names or len(shapes) != len(names):
            raise Unknown
        for name, shape in zip(names, shapes, strict=True):
            dtype = dtypes[name]
            if dtype is None:
                raise Unknown
            yield Array(dtype, shape)

    def operands(self, launch: Launch, node: ast.FunctionDef) -> list[ast.expr]:
        """What the function that a launch makes is called with, where it is called once."""
        origin = self.folding.constants.origin
        calls = [call for call in self.names.calls if origin(call.func) is launch.call]
        if len(calls) != 1 or calls[0].keywords or not self.inside(calls[0], node):
            raise Unknown
        return calls[0].args

    def operand(self, expr: ast.expr) -> tuple[str, str | None]:
        """The parameter that an operand of a launch is, and its dtype if it is cast on the way."""
        node, cast = without_cast(expr)
        binding = None
        if isinstance(node, ast.Name):
            binding = self.names.binding(node, self.names.scope(node))
        if binding is None or not isinstance(binding.node, ast.arg):
            raise Unknown
        return binding.node.arg, self.folding.dtype(cast) if cast is not None else None

    def asserted(self, function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
        """Yield the parameters whose dtype is asserted: `assert x.dtype == jnp.bfloat16`."""
        for node in ast.walk(function):
            match node:
                case ast.Assert(
                    test=ast.Compare(
                        left=ast.Attribute(value=ast.Name(id=name), attr="dtype"),
                        ops=[ast.Eq()],
                        comparators=[right],
                    )
                ) if self.inside(node, function):
                    yield name, self.folding.dtype(right)

    def operand_shapes(self, launch: Launch) -> list[tuple[int, ...]]:
        """The shapes of a launch's operands: block times the blocks that the grid walks over."""
        owner = launch.scratch_owner
        given = {keyword.arg for keyword in (*launch.call.keywords, *owner.keywords)}
        specs = self.folding.constants.origin(argument(owner, None, "in_specs"))
        if None in given or launch.prefetched or not isinstance(specs, ast.List | ast.Tuple):
            raise Unknown
        grid = self.folding.shape(launch.grid) if launch.grid is not None else ()
        return [self.spec_shape(spec, grid) for spec in specs.elts]

    def spec_shape(self, expr: ast.expr, grid: tuple[int, ...]) -> tuple[int, ...]:
        spec = self.folding.constants.origin(expr)
        if not isinstance(spec, ast.Call) or self.names.qualified(spec.func) != "pl.BlockSpec":
            raise Unknown
        names = {keyword.arg for keyword in spec.keywords}
        index_map = argument(spec, 1, "index_map")
        if index_map is None or not names <= {"block_shape", "index_map", "memory_space"}:
            raise Unknown
        block = self.folding.shape(argument(spec, 0, "block_shape"))
        counts = self.counts(index_map, grid)
        if len(counts) != len(block):
            raise Unknown
        return tuple(size * count for size, count in zip(block, counts, strict=True))

    def counts(self, index_map: ast.expr, grid: tuple[int, ...]) -> list[int]:
        """How many blocks each dimension has, if each is an axis of the grid or always 0."""
        match self.names.definition(index_map):
            case (
                ast.Lambda(args=arguments, body=ast.Tuple(elts=entries))
                | ast.FunctionDef(args=arguments, body=[ast.Return(value=ast.Tuple(elts=entries))])
            ):
                names = [arg.arg for arg in arguments.args]
            case _:
                raise Unknown
        if len(names) != len(grid):
            raise Unknown
        counts = []
        for entry in entries:
            if isinstance(entry, ast.Name) and entry.id in names:
                counts.append(grid[names.index(entry.id)])
            elif self.folding.constants.fold(entry) == 0:
                counts.append(1)
            else:
                raise Unknown
        return counts

    def top_level(self, wanted: Collection[str]) -> Iterator[Case]:
        for statement in self.facts.tree.body:
            if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.With | ast.For):
                for node in ast.walk(statement):
                    if isinstance(node, ast.Call) and self.runs(node, wanted):
                        yield Case(MODULE, derived=True)
                        return

    def runs(self, call: ast.Call, wanted: Collection[str]) -> bool:
        """True for a call, on import, of a function of the file or of what a call returned."""
        called = isinstance(call.func, ast.Name | ast.Call) and self.inside(call, None)
        return called and any(self.reaches(name, wanted) for name in self.globals(call.func))
