"""Names resolve by import and scope, never by convention."""

import ast

import pytest

from pallas_fix.edits import AddImport
from pallas_fix.facts import Facts
from pallas_fix.facts.names import canonical


def facts(text: str) -> Facts:
    return Facts.parse(text, "kernel.py")


def name_of(text: str, expr: str) -> str | None:
    """The canonical name of the last expression in `text` that is written `expr`."""
    module = facts(text)
    found = [n for n in ast.walk(module.tree) if isinstance(n, ast.expr) and ast.unparse(n) == expr]
    return module.names.qualified(found[-1])


@pytest.mark.parametrize(
    ("imports", "expr", "expected"),
    [
        ("from jax.experimental.pallas import tpu as pltpu", "pltpu.VMEM", "pltpu.VMEM"),
        ("from jax.experimental.pallas import tpu", "tpu.VMEM", "pltpu.VMEM"),
        ("from jax.experimental.pallas.tpu import VMEM as V", "V", "pltpu.VMEM"),
        ("import jax.experimental.pallas.tpu", "jax.experimental.pallas.tpu.VMEM", "pltpu.VMEM"),
        ("import jax.experimental.pallas.tpu as q", "q.MemorySpace.VMEM", "pltpu.VMEM"),
        ("from jax.experimental.pallas import triton as plgpu", "plgpu.load", "triton.load"),
        ("from jax.experimental.pallas import gpu as plgpu", "plgpu.load", "triton.load"),
        ("from jax.experimental.pallas import mosaic_gpu as plgpu", "plgpu.ACC", "plgpu.ACC"),
        ("from jax._src.pallas.mosaic import core as tc", "tc.AccMemorySpace", "pltpu.ACC"),
        ("from jax._src.pallas.mosaic_gpu import core as c", "c.WGMMAAccumulatorRef", "plgpu.ACC"),
        ("from jax._src.pallas import core as c", "c.BlockSpec", "pl.BlockSpec"),
        ("import jax.numpy as jnp", "jnp.float32", "jnp.float32"),
        ("import polars as pl", "pl.pallas_call", "polars.pallas_call"),
        ("from jax.experimental.pallas.tpu import *", "VMEM", None),
    ],
)
def test_imports(imports: str, expr: str, expected: str | None) -> None:
    assert name_of(f"{imports}\nx = {expr}\n", expr) == expected


PLTPU = "from jax.experimental.pallas import tpu as pltpu\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = pltpu.VMEM", "pltpu.VMEM"),
        ("space = pltpu.VMEM\ny = space", "pltpu.VMEM"),
        ("pltpu = object()\nx = pltpu.VMEM", None),
        ("def f(pltpu):\n    return pltpu.VMEM", None),
        ("def f():\n    import triton as pltpu\n    return pltpu.VMEM", "triton.VMEM"),
        ("def f():\n    def g():\n        return pltpu.VMEM", "pltpu.VMEM"),
        ("class C:\n    pltpu = 1\n    def f(self):\n        return pltpu.VMEM", "pltpu.VMEM"),
        ("for pltpu in []:\n    x = pltpu.VMEM", None),
        ("def f():\n    global pltpu\n    pltpu = 1\nx = pltpu.VMEM", None),
        ("[pltpu.VMEM for pltpu in xs]", None),
        ("with a as pltpu:\n    x = pltpu.VMEM", None),
        ("try:\n    import a\nexcept E as pltpu:\n    x = pltpu.VMEM", None),
    ],
)
def test_scopes(body: str, expected: str | None) -> None:
    expr = "space" if body.startswith("space") else "pltpu.VMEM"
    assert name_of(PLTPU + body, expr) == expected


def test_a_guarded_module_import_resolves() -> None:
    text = (
        "try:\n    from jax.experimental.pallas import tpu as pltpu\n"
        "except ImportError:\n    pltpu = None\nx = pltpu.VMEM\n"
    )
    assert name_of(text, "pltpu.VMEM") == "pltpu.VMEM"


def test_two_modules_under_one_name_are_unknown() -> None:
    text = (
        "try:\n    from jax.experimental.pallas import mosaic_gpu as plgpu\n"
        "except ImportError:\n    from jax.experimental.pallas import triton as plgpu\n"
        "x = plgpu.load\n"
    )
    assert name_of(text, "plgpu.load") is None


def test_invented_members_stay_apart() -> None:
    assert canonical("jax.experimental.pallas.tpu.MemorySpace.SMEM") == "pltpu.SMEM"
    invented = "pltpu.MemorySpace.ACCUMULATOR"
    assert canonical("jax.experimental.pallas.tpu.MemorySpace.ACCUMULATOR") == invented


@pytest.mark.parametrize(
    ("text", "name", "spelled", "imports"),
    [
        (PLTPU, "pltpu.ACC", "pltpu.ACC", ()),
        ("from jax.experimental.pallas import tpu as t\n", "pltpu.ACC", "t.ACC", ()),
        ("from jax.experimental.pallas.tpu import ACC as A\n", "pltpu.ACC", "A", ()),
        (
            "import jax.experimental.pallas.tpu\n",
            "pltpu.ACC",
            "jax.experimental.pallas.tpu.ACC",
            (),
        ),
        (
            "import jax\n",
            "pl.run_scoped",
            "pl.run_scoped",
            (AddImport("jax.experimental", "pallas", "pl"),),
        ),
        (
            "pl = 1\n",
            "pl.run_scoped",
            "_pl.run_scoped",
            (AddImport("jax.experimental", "pallas", "_pl"),),
        ),
        ("import jax\n", "jnp.float32", "jnp.float32", (AddImport("jax.numpy", None, "jnp"),)),
    ],
)
def test_spelling(text: str, name: str, spelled: str, imports: tuple[AddImport, ...]) -> None:
    module = facts(f"{text}x = 0\n")
    found = module.names.spell(name, module.tree.body[-1])
    assert (found.text, found.imports) == (spelled, imports)


def test_spelling_sees_a_local_import() -> None:
    module = facts(f"def f():\n    {PLTPU}    return 0\n")
    function = module.tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert module.names.spell("pltpu.ACC", function.body[-1]).imports == ()
    assert module.names.spell("pltpu.ACC", function).imports != ()


def test_positions_count_characters() -> None:
    module = facts("s = 'é\u2028\x0c'; name = 1\r\nother = 2\r\n")
    spans = [module.span(s) for s in module.tree.body]
    assert [module.source(s) for s in module.tree.body] == [
        "s = 'é\u2028\x0c'",
        "name = 1",
        "other = 2",
    ]
    assert (spans[1].line, spans[1].column) == (1, 11)
