"""The shapes of refs and of what is read from them, as far as the file tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.values import Event, Ref, Trace

_MAKERS = frozenset({"jax.ShapeDtypeStruct", "jnp.zeros", "jnp.ones", "jnp.empty", "jnp.full"})
_PYTHON_LOOPS = frozenset({"range", "enumerate", "reversed", "zip"})


@dataclass(frozen=True, slots=True)
class Extent:
    """A shape: its dimensions (None: not known), the expressions that say them, the dtype.

    `sure` is false where the shape stands in a call of a function that is not known: in
    `out_shape=S((M, N))` it can hardly be anything else.
    """

    dims: tuple[int | None, ...]
    exprs: tuple[ast.expr | None, ...]
    dtype: str | None = None
    sure: bool = True


def ref_extent(module: Facts, trace: Trace, ref: Ref) -> Extent | None:
    """The shape of a ref, or None where not even its rank is known."""
    if ref.allocation is not None:
        return _written(module, ref.allocation.shape, ref.allocation.dtype)
    launch = ref.launch
    if ref.kind != "operand" or launch is None:
        return None
    if ref.output is not None:
        whole = _output(module, launch, ref.output)
        specs = argument(launch.scratch_owner, None, "out_specs")
        return _block(module, specs, ref.output, whole)
    if ref.name not in trace.parameters:
        return None
    position = trace.parameters.index(ref.name)
    whole = _input(module, launch, position)
    specs = argument(launch.scratch_owner, None, "in_specs")
    return _block(module, specs, position - launch.prefetched, whole)


def lhs_rows(module: Facts, trace: Trace, event: Event) -> int | None:
    """The rows of the left operand of a matmul, where they are known."""
    dims = _dims(module, trace, event.value)
    return dims[0] if dims else None


def is_python_index(module: Facts, expr: ast.expr) -> bool:
    """True for an index that is a Python integer while the kernel is traced.

    Constants, targets of Python loops over `range` and the like, and arithmetic of these.
    """
    names = module.names
    for node in ast.walk(expr):
        if isinstance(node, ast.Call | ast.Subscript | ast.Attribute):
            return False
        if not isinstance(node, ast.Name):
            continue
        if isinstance(module.constants.fold(node), int):
            continue
        binding = names.binding(node, names.scope(node))
        loop = binding.node if binding is not None and binding.kind == "for" else None
        over = getattr(loop, "iter", None)
        if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Name):
            return False
        if over.func.id not in _PYTHON_LOOPS or names.lookup(over.func.id, names.scope(over)):
            return False
    return True


def _written(
    module: Facts, shape: ast.expr | None, dtype: ast.expr | None, sure: bool = True
) -> Extent | None:
    dims = module.constants.shape(shape)
    if dims is None:
        return None
    origin = module.constants.origin(shape)
    exprs: tuple[ast.expr | None, ...] = (None,) * len(dims)
    if isinstance(origin, ast.Tuple | ast.List):
        exprs = tuple(origin.elts)
    return Extent(dims, exprs, module.constants.dtype(dtype), sure)


def _struct(module: Facts, expr: ast.expr | None) -> Extent | None:
    """The shape that `jax.ShapeDtypeStruct(...)` or a call like it says."""
    node = module.constants.origin(expr)
    if not isinstance(node, ast.Call):
        return None
    name = module.names.qualified(node.func)
    shape, dtype = argument(node, 0, "shape"), argument(node, 1, "dtype")
    if name in _MAKERS:
        return _written(module, shape, dtype)
    given = module.constants.origin(shape)
    unknown = name is None or not name.startswith(("jnp.", "np.", "pl."))
    if not unknown or not isinstance(given, ast.Tuple):
        return None
    return _written(module, shape, dtype, sure=False)


def _output(module: Facts, launch: Launch, index: int) -> Extent | None:
    call = launch.call
    shape = argument(call, None, "out_shape") or argument(call, None, "out_type")
    if shape is None and not launch.decorator:
        shape = argument(call, 1, "out_shape")
    return _struct(module, _nth(module, shape, index))


def _input(module: Facts, launch: Launch, index: int) -> Extent | None:
    """The shape of the argument with which the launch is called."""
    called = module.names.parent.get(launch.call)
    if not isinstance(called, ast.Call) or called.func is not launch.call:
        return None
    if index >= len(called.args) or any(isinstance(a, ast.Starred) for a in called.args):
        return None
    found = _passed(module, called.args[index], 0)
    return None if found is None else Extent(found.dims, found.exprs, found.dtype, sure=False)


def _passed(module: Facts, expr: ast.expr, depth: int) -> Extent | None:
    """Follow a parameter to the only call that passes it, or to `f(lambda x: ..., shape)`."""
    direct = _struct(module, expr)
    if direct is not None or depth > 4 or not isinstance(expr, ast.Name):
        return direct
    names = module.names
    binding = names.binding(expr, names.scope(expr))
    if binding is None or binding.kind != "param":
        return None
    arguments = names.parent[binding.node]
    function = names.parent[arguments]
    if not isinstance(arguments, ast.arguments):
        return None
    positional = [*arguments.posonlyargs, *arguments.args]
    if binding.node not in positional:
        return None
    position = positional.index(binding.node)
    if isinstance(function, ast.Lambda):
        around = names.parent[function]
        if not isinstance(around, ast.Call) or not around.args or around.args[0] is not function:
            return None
        given = around.args[1:]
        return _passed(module, given[position], depth + 1) if len(given) > position else None
    callers = names.callers.get(function, []) if isinstance(function, ast.FunctionDef) else []
    if len(callers) != 1 or any(isinstance(a, ast.Starred) for a in callers[0].args):
        return None
    found = argument(callers[0], position, expr.id)
    return _passed(module, found, depth + 1) if found is not None else None


def _block(
    module: Facts, specs: ast.expr | None, index: int, whole: Extent | None
) -> Extent | None:
    """The shape of the window that a kernel sees of an operand."""
    if specs is None:
        return whole
    spec = module.constants.origin(_nth(module, specs, index))
    if not isinstance(spec, ast.Call) or module.names.qualified(spec.func) != "pl.BlockSpec":
        return None
    shape = argument(spec, 0, "block_shape")
    if shape is None or module.constants.fold(shape) is None:
        return whole
    extent = _written(module, shape, None)
    if extent is None:
        return None
    kept = [i for i, e in enumerate(extent.exprs) if e is None or not _squeezed(module, e)]
    dtype = whole.dtype if whole is not None else None
    dims, exprs = extent.dims, extent.exprs
    return Extent(tuple(dims[i] for i in kept), tuple(exprs[i] for i in kept), dtype)


def _squeezed(module: Facts, expr: ast.expr) -> bool:
    if isinstance(expr, ast.Call):
        return module.names.qualified(expr.func) == "pl.Squeezed"
    return module.constants.fold(expr) is None


def _nth(module: Facts, expr: ast.expr | None, index: int) -> ast.expr | None:
    """The entry of a list of specs or shapes; a single one counts as a list of one."""
    node = module.constants.origin(expr)
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            if any(isinstance(e, ast.Starred) for e in elements):
                return None
            return elements[index] if 0 <= index < len(elements) else None
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            inner, count = module.constants.origin(left), module.constants.fold(right)
            alone = isinstance(inner, ast.Tuple | ast.List) and len(inner.elts) == 1
            if isinstance(inner, ast.Tuple | ast.List) and alone and isinstance(count, int):
                return inner.elts[0] if index < count else None
            return None
        case _:
            return node if index == 0 else None


def _dims(module: Facts, trace: Trace, expr: ast.expr | None) -> list[int | None] | None:
    """The dimensions of an array: what is read from a ref, made anew, or cast."""
    node = module.constants.origin(expr)
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="astype")):
            return _dims(module, trace, inner)
        case ast.Call():
            made = _struct(module, node)
            return list(made.dims) if made is not None and made.sure else None
        case ast.Subscript(slice=index):
            loads = [e for e in trace.root.events() if e.kind == "load" and e.node is node]
            refs = {event.ref for event in loads if event.ref is not None}
            if len(refs) != 1:
                return None
            extent = ref_extent(module, trace, refs.pop())
            return _indexed(module, extent, index)
        case _:
            return None


def _indexed(module: Facts, extent: Extent | None, index: ast.expr) -> list[int | None] | None:
    """The dimensions that an index leaves; of those after it None is known without `extent`."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    dims = list(extent.dims) if extent is not None else None
    found: list[int | None] = []
    for position, part in enumerate(parts):
        if isinstance(part, ast.Constant) and part.value is Ellipsis:
            if dims is None or position + 1 < len(parts):
                return found or None
            break
        here = dims.pop(0) if dims else None
        if isinstance(part, ast.Slice):
            found.append(_length(module, part, here))
        elif isinstance(part, ast.Call):
            if module.names.qualified(part.func) not in ("pl.ds", "pl.dslice"):
                return None
            size = module.constants.fold(argument(part, 1, "size"))
            found.append(size if isinstance(size, int) else None)
        elif not is_python_index(module, part):
            return None
    return [*found, *(dims or ())] or None


def _length(module: Facts, part: ast.Slice, dim: int | None) -> int | None:
    low = module.constants.fold(part.lower) if part.lower is not None else 0
    high = module.constants.fold(part.upper) if part.upper is not None else dim
    plain = part.step is None and isinstance(low, int) and isinstance(high, int)
    if not plain or not isinstance(low, int) or not isinstance(high, int):
        return None
    return high - low if 0 <= low <= high else None
