"""Memory spaces and meshes of another backend in a TPU kernel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pallas_fix.edits import Code, Replace
from pallas_fix.facts import Facts
from pallas_fix.facts.allocations import argument
from pallas_fix.facts.launches import Launch
from pallas_fix.facts.values import Trace
from pallas_fix.rules.base import Reason
from pallas_fix.rules.construction.trouble import Repair, Trouble

# Spaces that a TPU mesh does not have (jax/_src/pallas/mosaic/core.py, TensorCoreMesh).
_OFF_MESH = frozenset({"pltpu.HBM", "pltpu.ANY", "pltpu.VMEM_SHARED", "pl.MemorySpace.ANY"})
_SPACES = ("plgpu.SMEM", "plgpu.GMEM", "plgpu.TMEM", "plgpu.REGS", "plgpu.ACC", "plgpu.MemorySpace")


def gpu_space(module: Facts) -> Iterator[Trouble]:
    """Scratch in a GPU memory space, in a launch that does nothing else that is of GPUs."""
    done: set[ast.AST] = set()
    for trace in module.traces:
        launch = trace.launch
        if launch is None or launch.kind == "gpu_kernel" or _runs_on_gpu(module, trace, launch):
            continue
        for ref in trace.refs:
            allocation = ref.allocation
            if allocation is None or allocation.node in done or ref.space not in _SPACES:
                continue
            done.add(allocation.node)
            message = f"`{module.source(allocation.space_node)}` is a memory space of GPUs"
            node = allocation.node
            plain = isinstance(node, ast.Call) and len(node.args) + len(node.keywords) == 2
            repair = _replaced(module, allocation.space_node, ref.space, plain)
            yield Trouble(node, message, repair)


def mesh_space(module: Facts) -> Iterator[Trouble]:
    """`space @ mesh` for a space that no mesh of cores has."""
    for node in module.index.all(ast.BinOp):
        if not isinstance(node.op, ast.MatMult):
            continue
        if module.names.qualified(node.left) in _OFF_MESH:
            written = module.source(node.left)
            message = f"`{written}` belongs to no core, so that it cannot be put on a mesh"
            yield Trouble(node, message, _on_core(module, node))


def foreign_mesh(module: Facts) -> Iterator[Trouble]:
    """A TPU kernel that is launched over a mesh of GPU threads."""
    for trace in module.traces:
        launch = trace.launch
        mesh = argument(launch.call, None, "mesh") if launch is not None else None
        made = module.constants.origin(mesh)
        if launch is None or launch.kind not in ("kernel", "core_map"):
            continue
        if not isinstance(made, ast.Call) or module.names.qualified(made.func) != "plgpu.Mesh":
            continue
        if _calls(module, trace.function, "pltpu."):
            message = "the kernel is for TPUs, and its mesh for GPUs"
            yield Trouble(made, message, _core_mesh(module, made))


def _on_core(module: Facts, node: ast.BinOp) -> Repair:
    """What kernels keep on a core for a while is in VMEM, as far as its size allows."""
    spelled = module.names.spell("pltpu.VMEM", node)
    edit = Replace(module.span(node.left), Code(spelled.text))
    return Repair((edit, *spelled.imports), certain=False)


def _core_mesh(module: Facts, mesh: ast.Call) -> Repair | Reason:
    """`plgpu.Mesh` of one thread as the mesh of one TPU core."""
    given = {keyword.arg: module.constants.fold(keyword.value) for keyword in mesh.keywords}
    names = given.get("grid_names", ())
    axes = [*names] if isinstance(names, tuple) else [None]
    axes += [given["thread_name"]] if given.get("thread_name") is not None else []
    sizes = given.get("grid", ())
    counts = [*sizes] if isinstance(sizes, tuple) else [None]
    single = all(count == 1 for count in (*counts, given.get("num_threads") or 1))
    known = set(given) <= {"grid", "grid_names", "num_threads", "thread_name"} and not mesh.args
    if not known or not single or len(axes) > 1 or not all(isinstance(a, str) for a in axes):
        return Reason(
            "foreign-mesh",
            "how the kernel is spread over TPU cores is open",
            'launch it over pltpu.TensorCoreMesh(axis_name="core", num_cores=1)',
        )
    axis = axes[0] if axes else "core"
    spelled = module.names.spell("pltpu.TensorCoreMesh", mesh)
    code = Code(f'{spelled.text}(axis_name="{axis}", num_cores=1)')
    return Repair((Replace(module.span(mesh), code), *spelled.imports), certain=False)


def _replaced(module: Facts, node: ast.expr, space: str | None, plain: bool) -> Repair | Reason:
    if space != "plgpu.SMEM" or not plain:
        return Reason(
            "gpu-space",
            "TPUs have no memory like it" if space != "plgpu.SMEM" else "it has GPU transforms",
            "allocate it with pltpu.VMEM(shape, dtype), or launch the kernel with plgpu.kernel",
        )
    spelled = module.names.spell("pltpu.VMEM", node)
    edit = Replace(module.span(node), Code(spelled.text))
    return Repair((edit, *spelled.imports), certain=False)


def _runs_on_gpu(module: Facts, trace: Trace, launch: Launch) -> bool:
    """True where the launch or the kernel calls something that only GPUs have."""
    return any(_calls(module, node, "plgpu.") for node in (launch.call, trace.function))


def _calls(module: Facts, around: ast.AST, prefix: str) -> bool:
    for node in ast.walk(around):
        if isinstance(node, ast.Call):
            name = module.names.qualified(node.func) or ""
            if name.startswith(prefix) and not name.startswith(_SPACES):
                return True
    return False
