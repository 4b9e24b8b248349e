"""Which backend a piece of a kernel is for."""

from __future__ import annotations

import ast
import textwrap

import pytest

from pallas_fix.facts import Facts
from pallas_fix.facts.backends import Backend

HEAD = """\
import functools
import jax
from jax.experimental import pallas as pl
"""
BOTH = """\
from jax.experimental.pallas import tpu as pltpu, triton as plt, mosaic_gpu as plgpu
"""
SHAPE = "jax.ShapeDtypeStruct((8, 128), 'float32')"


def backend(text: str) -> Backend:
    """The backend at the call of `mark()` in a module that imports Pallas."""
    facts = Facts.parse(HEAD + textwrap.dedent(text), "kernel.py")
    [mark] = (c for c in facts.names.calls if isinstance(c.func, ast.Name) and c.func.id == "mark")
    return facts.backends.of(mark)


def launched(arguments: str, before: str = "", kernel: str = "kernel") -> str | None:
    """The backend of a kernel whose launch has these arguments."""
    return backend(f"""\
{BOTH}
def kernel(x_ref, o_ref):
    mark()
{before}
def run(x):
    return pl.pallas_call({kernel}, out_shape={SHAPE}, {arguments})(x)
""").name


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ("compiler_params=pltpu.CompilerParams()", "tpu"),
        ("compiler_params=pltpu.TPUCompilerParams(dimension_semantics=('parallel',))", "tpu"),
        ("compiler_params=plt.CompilerParams(num_warps=4)", "triton"),
        ("compiler_params=plt.TritonCompilerParams()", "triton"),
        ("compiler_params=plgpu.CompilerParams()", "mosaic_gpu"),
        ("compiler_params=plgpu.GPUCompilerParams()", "mosaic_gpu"),
        ("compiler_params=dict(mosaic=dict(dimension_semantics=('parallel',)))", "tpu"),
        ("compiler_params={'triton': {'num_warps': 4}}", "triton"),
        ("compiler_params=dict(mosaic_gpu={})", "mosaic_gpu"),
        ("compiler_params=dict(num_warps=4, num_stages=2)", "triton"),
        ("compiler_params=dict(mosaic={}, triton={})", None),
        ("num_warps=4", "triton"),
        ("num_stages=2", "triton"),
        ("backend='mosaic_tpu'", "tpu"),
        ("backend='triton'", "triton"),
        ("backend='mosaic_gpu'", "mosaic_gpu"),
        ("interpret=pltpu.InterpretParams()", "tpu"),
        ("in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)]", "tpu"),
        ("out_specs=pl.BlockSpec(memory_space=plgpu.GMEM)", "mosaic_gpu"),
        ("scratch_shapes=[pltpu.VMEM((8, 128), 'float32')]", "tpu"),
        ("grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,))", "tpu"),
        ("**dict(compiler_params=plt.CompilerParams())", "triton"),
        ("**{'num_warps': 4}", "triton"),
        ("interpret=True", None),
        ("", None),
    ],
)
def test_a_launch_says_it_by_its_arguments(arguments: str, name: str | None) -> None:
    """Parameters, words, memory spaces and interpreters each belong to one backend."""
    assert launched(arguments) == name


@pytest.mark.parametrize(
    ("before", "arguments", "name"),
    [
        ("params = plt.CompilerParams(num_warps=4)", "compiler_params=params", "triton"),
        ("def params():\n    return dict(triton={})", "compiler_params=params()", "triton"),
        (
            "def params(a):\n    found = None\n    if a:\n        found = dict(triton=dict(a=1))\n"
            "    return found",
            "compiler_params=params(1)",
            "triton",
        ),
        ("A = 1", "compiler_params=plt.CompilerParams() if A else None", "triton"),
        ("A = 1", "compiler_params=plt.CompilerParams() if A else pltpu.CompilerParams()", None),
        ("spec = pl.BlockSpec(memory_space=pltpu.SMEM)", "in_specs=[spec, spec]", "tpu"),
        (
            "def spec():\n    return pl.BlockSpec(memory_space=pltpu.SMEM)",
            "in_specs=[spec()]",
            "tpu",
        ),
        ("options = dict(compiler_params=plt.CompilerParams())", "**options", "triton"),
        ("space = pltpu.VMEM", "scratch_shapes=[space((8, 128), 'float32')]", "tpu"),
    ],
)
def test_what_a_launch_is_given_is_followed(before: str, arguments: str, name: str | None) -> None:
    """Names, arms and functions are followed to what they may be."""
    assert launched(arguments, before) == name


@pytest.mark.parametrize(
    "kernel",
    [
        "functools.partial(kernel, block=8)",
        "jax.named_call(functools.partial(kernel), name='kernel')",
        "lambda *refs: kernel(*refs)",
        "other",
        "make()",
        "kernel if SOME else other",
    ],
)
def test_a_launch_finds_its_kernel(kernel: str) -> None:
    """A kernel may be bound, wrapped, renamed, chosen, made by a function, or called by another."""
    before = "SOME = True\nother = kernel\ndef make():\n    return functools.partial(kernel, a=1)"
    assert launched("num_warps=4", before, kernel) == "triton"


def test_a_kernel_that_a_function_makes() -> None:
    """The function inside is the kernel, not the one that returns it."""
    found = backend(f"""
{BOTH}
def make(block):
    def kernel(x_ref, o_ref):
        mark()
    return kernel

def run(x):
    return pl.pallas_call(make(8), out_shape={SHAPE}, num_warps=4)(x)
""")
    assert found == Backend("triton", "it is launched for triton")


HELPED = """
def helper(ref):
    {helper}

def step(ref, i):
    {step}

def kernel(x_ref, o_ref):
    {kernel}

def run(x):
    return pl.pallas_call(kernel, out_shape=x, {launch})(x)
"""


@pytest.mark.parametrize(
    ("step", "kernel"),
    [
        ("return helper(ref)", "step(x_ref, 0)"),
        ("return helper(ref)", "jax.lax.fori_loop(0, 2, functools.partial(step, x_ref), None)"),
        ("return helper(ref)", "jax.lax.fori_loop(0, 2, lambda i, _: step(x_ref, i), None)"),
        ("pl.when(i == 0)(helper)", "pl.when(x_ref[0] > 0)(step)"),
    ],
)
def test_a_helper_is_for_the_backend_of_the_kernel(step: str, kernel: str) -> None:
    """Functions that a kernel calls or hands on are a part of it."""
    text = HELPED.format(helper="mark()", step=step, kernel=kernel, launch="num_warps=4")
    assert backend(BOTH + text).name == "triton"


def test_a_helper_of_two_backends_is_for_none() -> None:
    """Two kernels that call it, for two backends: nobody knows, and the launches are named."""
    found = backend(f"""
{BOTH}
def helper(ref):
    mark()

def one(x_ref, o_ref):
    helper(x_ref)

def two(x_ref, o_ref):
    helper(x_ref)

def run(x):
    y = pl.pallas_call(one, out_shape=x, compiler_params=plt.CompilerParams())(x)
    return pl.pallas_call(two, out_shape=x, compiler_params=pltpu.CompilerParams())(y)
""")
    assert found.name is None
    assert found.why == "it is launched for tpu and for triton"
    assert "the launch in lines 17, 18" in found.decides


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("x = pltpu.roll(x_ref[...], 1, 0); mark()", "tpu"),
        ("plt.atomic_add(o_ref, (0,), 1); mark()", "triton"),
        ("plgpu.commit_smem(); mark()", "mosaic_gpu"),
        ("pl.atomic_add(o_ref, (0,), 1); mark()", "triton"),
        ("pl.load(x_ref, (0,), eviction_policy='evict_last'); mark()", "triton"),
        ("pl.load(x_ref, (0,), eviction_policy=None); mark()", None),
        ("plt.debug_barrier(); pltpu.roll(x_ref[...], 1, 0); mark()", None),
        ("pl.run_scoped(lambda a: mark(), pltpu.VMEM((8, 128), 'float32'))", "tpu"),
        ("mark(); helper(x_ref)", "tpu"),
        ("mark()", None),
    ],
)
def test_a_kernel_says_it_by_what_it_uses(kernel: str, name: str | None) -> None:
    """Where the launch says nothing, the functions that a kernel uses do."""
    helper = "return pltpu.roll(ref[...], 1, 0)"
    text = HELPED.format(helper=helper, step="pass", kernel=kernel, launch="")
    assert backend(BOTH + text).name == name


def test_a_helper_by_what_its_kernel_uses() -> None:
    """What stands in the kernel that calls it counts, what stands beside its launch does not."""
    text = HELPED.format(
        helper="mark()", step="pass", kernel="helper(pltpu.roll(x_ref[...], 1, 0))", launch=""
    )
    assert backend(BOTH + text + "    plt.CompilerParams()\n").name == "tpu"


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("mark(); pltpu.roll(x_ref[...], 1, 0)", "tpu"),
        ("mark(); pl.atomic_add(o_ref, (0,), 1)", "triton"),
        ("mark(); plgpu.commit_smem()", None),
        ("mark()", None),
    ],
)
def test_a_launch_for_two_backends(kernel: str, name: str | None) -> None:
    """Parameters for both say nothing, but a kernel may use what only one of them has."""
    launch = "compiler_params=dict(mosaic={}, triton={})"
    text = HELPED.format(helper="pass", step="pass", kernel=kernel, launch=launch)
    assert backend(BOTH + text).name == name


@pytest.mark.parametrize(
    ("imports", "name"),
    [
        ("from jax.experimental.pallas import tpu as pltpu", "tpu"),
        ("from jax.experimental.pallas import triton as pltpu", "triton"),
        ("from jax.experimental.pallas import gpu as plgpu", "triton"),
        ("from jax.experimental.pallas import mosaic_gpu as plt", "mosaic_gpu"),
        ("import jax.experimental.pallas.tpu as pt", "tpu"),
        ("import jax.experimental.pallas.triton", "triton"),
        ("import jax.experimental.pallas.triton, jax.experimental.pallas.tpu", None),
        ("import jax.experimental.pallas", None),
        ("def late():\n    from jax.experimental.pallas import tpu", "tpu"),
        ("from jax.experimental.pallas.ops.tpu import matmul", None),
        ("import polars as pltpu", None),
        (BOTH, None),
        ("", None),
    ],
)
def test_the_imports_of_the_file_come_last(imports: str, name: str | None) -> None:
    """A file that imports the module of one backend only is for that one."""
    found = backend(f"{imports}\ndef kernel(x_ref, o_ref):\n    mark()\n")
    assert found.name == name
    if name is None:
        assert found.decides


def test_the_parameters_weigh_more_than_the_imports() -> None:
    """A TPU file may hold a Triton kernel."""
    found = backend(f"""
from jax.experimental.pallas import tpu as pltpu
def kernel(x_ref, o_ref):
    mark()
def run(x):
    return pl.pallas_call(kernel, out_shape={SHAPE}, compiler_params=dict(triton={{}}))(x)
""")
    assert found.name == "triton"


@pytest.mark.parametrize(
    ("decorator", "name"),
    [
        ("plgpu.kernel(out_type=SHAPE)", "mosaic_gpu"),
        ("pl.kernel(out_type=SHAPE, mesh=pltpu.create_tensorcore_mesh('x'))", "tpu"),
        ("pl.core_map(pltpu.create_tensorcore_mesh('x'))", "tpu"),
        ("pl.core_map(MESH)", "tpu"),
        ("pltpu.core_map(mesh=plgpu.Mesh())", "tpu"),
        ("functools.partial(pl.pallas_call, out_shape=SHAPE, num_warps=4)", "triton"),
        ("functools.partial(plgpu.kernel, out_type=SHAPE)", "mosaic_gpu"),
    ],
)
def test_decorators_launch_too(decorator: str, name: str) -> None:
    """Kernels under a decorator, with meshes."""
    found = backend(f"""
{BOTH}
SHAPE = {SHAPE}
MESH = pltpu.create_tensorcore_mesh('x')
@{decorator}
def kernel(x_ref, o_ref):
    mark()
""")
    assert found.name == name
