"""API035: `pl.core_map`, which `pl.kernel` has replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pallas_fix.edits import (
    AddParameter,
    Code,
    Edit,
    InsertAfter,
    NameArgument,
    RemoveStatement,
    RenameKeyword,
    Replace,
)
from pallas_fix.facts import Facts
from pallas_fix.rules.access.given import given
from pallas_fix.rules.access.uses import uses
from pallas_fix.rules.base import Finding, Reason, Rule
from pallas_fix.versions import changed

_CHANGE = changed("0.10.2", warns="0.11.0")
_KNOWN = frozenset({"jax", "functools", "itertools", "math", "numpy", "operator"})


class CoreMap(Rule):
    """`pl.core_map` is used, which `pl.kernel` has replaced.

    ## What it does
    The decorator becomes `pl.kernel(mesh=mesh, ...)`, and the function is called where it was
    defined; `scratch_shapes=` becomes `scratch_types=`. The refs around it stay where they are:
    the kernel may close over them. Over `plgpu.WarpMesh` the decorator becomes `plgpu.warp_map`
    where the function asks for nothing but the number of its warp.

    ## Why it fails
    Since jax 0.11.0 a DeprecationWarning: "jax.experimental.pallas.core_map is deprecated, use
    jax.experimental.pallas.kernel instead." (jax/experimental/pallas/__init__.py). It still works,
    and does what the new form does (jax/_src/pallas/core.py and mpmd.py).

    ## Example
    ```python
    @pl.run_state
    def run(refs):
        x_ref, y_ref = refs

        @pl.core_map(mesh)
        def copy():
            pltpu.sync_copy(x_ref, y_ref)
    ```
    becomes
    ```python
    @pl.run_state
    def run(refs):
        x_ref, y_ref = refs

        @pl.kernel(mesh=mesh)
        def copy():
            pltpu.sync_copy(x_ref, y_ref)

        copy()
    ```

    ## When it is not fixed
    The function is handed on without being called, its arguments are unpacked, or what it returns
    is used; the code must also run on jax before 0.10.2, whose `pl.kernel` needs an output.

    ## What to do by hand
    Write `pl.kernel(body, mesh=mesh)()`, or give it the refs as arguments.

    ## How it is verified
    The kernel is traced, lowered and compiled before and after, and run where that can be done.
    """

    code = "API035"
    name = "core-map"
    triggers = ("core_map",)
    messages = (r"core_map is deprecated",)

    def find(self, module: Facts) -> Iterator[Finding]:
        """Yield one finding for each use."""
        for node, _, call in uses(module, {"pl.core_map"}):
            edits = _edits(module, call) if call else None
            yield self.reported(
                module,
                call or node,
                f"`pl.core_map` is {_CHANGE}: now `pl.kernel`",
                _CHANGE,
                edits or _NOT_PLAIN,
            )


_NOT_PLAIN = Reason(
    "not-called-plainly",
    "it is handed on, its arguments are unpacked, or what it returns is used",
    "write pl.kernel(body, mesh=mesh)() where the mesh and the body are known",
)


def _edits(module: Facts, call: ast.Call) -> Sequence[Edit] | None:
    arguments = given(call, "mesh")
    if arguments is None or "mesh" not in arguments:
        return None
    around = module.names.parent[call]
    if isinstance(around, ast.FunctionDef):
        if around.decorator_list[0] is not call:
            return None
        if arguments.keys() == {"mesh"}:
            warps = _warps(module, call, arguments["mesh"], around)
            if warps is not None:
                return warps
        run = InsertAfter(module.span(around), Code(f"\n{around.name}()"))
        return (*_launched(module, call, arguments), run)
    plain = isinstance(around, ast.Call) and around.func is call and not around.keywords
    if not isinstance(around, ast.Call) or not plain or len(around.args) != 1:
        return None
    body = around.args[0]
    if isinstance(body, ast.Starred) or not isinstance(module.names.parent[around], ast.Expr):
        return None
    parts = {"launch": module.span(call), "body": module.span(body)}
    run_it = Replace(module.span(around), Code("$launch($body)()", parts))
    return (*_launched(module, call, arguments), run_it)


def _launched(module: Facts, call: ast.Call, arguments: dict[str, ast.expr]) -> Iterator[Edit]:
    """The edits that make a launch with `pl.kernel` of a call."""
    span = module.span(call)
    spelled = module.names.spell("pl.kernel", call)
    yield Replace(module.span(call.func), Code(spelled.text))
    yield from spelled.imports
    if call.args:
        yield NameArgument(span, module.span(arguments["mesh"]), "mesh")
    if "scratch_shapes" in arguments:
        yield RenameKeyword(span, "scratch_shapes", "scratch_types")


def _warps(
    module: Facts, call: ast.Call, mesh: ast.expr, function: ast.FunctionDef
) -> tuple[Edit, ...] | None:
    """The edits that make `plgpu.warp_map` of a map over the warps.

    None where the function may ask for the axis in another way: a warp map has no name for it.
    """
    axis = _axis(module, mesh)
    if axis is None or ast.unparse(function.args) or _calls_others(module, function):
        return None
    asked = list(_asked(module, function, axis))
    bodies = [
        parent
        for node in module.index.attributes.get("core_map", ())
        if isinstance(made := module.names.parent[node], ast.Call)
        and isinstance(parent := module.names.parent[made], ast.FunctionDef)
    ]
    inside = {one.args[0] for body in bodies for one in _asked(module, body, axis)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and node.value == axis and node not in inside:
            around = module.names.parent[module.names.parent[node]]
            if _axis(module, around) is None:
                return None
    spelled = module.names.spell("plgpu.warp_map", call)
    span = module.span(function)
    name, edits = _number(module, function, asked)
    new = Replace(module.span(call), Code(spelled.text))
    return (new, *spelled.imports, AddParameter(span, name), *edits)


def _axis(module: Facts, mesh: ast.AST) -> str | None:
    """The name that `plgpu.WarpMesh(axis_name="...")` gives its axis, if it is written out."""
    if not isinstance(mesh, ast.Call) or module.names.public(mesh.func) != "plgpu.WarpMesh":
        return None
    arguments = given(mesh)
    name = arguments.get("axis_name") if arguments is not None else None
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def _asked(module: Facts, function: ast.FunctionDef, axis: str) -> Iterator[ast.Call]:
    """The calls in a function that ask for the index of an axis."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and module.names.public(node.func) == "lax.axis_index":
            named = len(node.args) == 1 and not node.keywords
            if named and getattr(node.args[0], "value", None) == axis:
                yield node


def _calls_others(module: Facts, function: ast.FunctionDef) -> bool:
    """True for a function that calls one of another project, which may ask for the axis."""
    paths = (module.names.path(n.func) for n in ast.walk(function) if isinstance(n, ast.Call))
    return any(path is not None and path.partition(".")[0] not in _KNOWN for path in paths)


def _number(
    module: Facts, function: ast.FunctionDef, asked: list[ast.Call]
) -> tuple[str, list[Edit]]:
    """The name of the parameter that is the number of the warp, and the edits that use it."""
    used = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    free = [name for name in ("_", "warp_id", module.names.fresh("warp_id")) if name not in used]
    if not asked:
        return free[0], []
    for statement in function.body:
        if not isinstance(statement, ast.Assign) or [statement.value] != asked:
            continue
        target = statement.targets[0]
        if len(statement.targets) == 1 and isinstance(target, ast.Name):
            bound = module.names.scopes[function].bindings.get(target.id, [])
            remarks = "#" in module.text.splitlines()[statement.lineno - 1]
            if len(bound) == 1 and not remarks:
                return target.id, [RemoveStatement(module.span(statement))]
    name = next(name for name in free if name != "_")
    return name, [Replace(module.span(one), Code(name)) for one in asked]
