"""The walk follows refs through kernels in the order in which they run."""

from pallas_fix.facts import Facts
from pallas_fix.facts.values import Event, GridTest, Region, Trace

PRELUDE = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
ACC = pltpu.VMEM((64, 256), jnp.float32)
OUT = jax.ShapeDtypeStruct((64, 256), jnp.float32)
"""


def traces(body: str) -> tuple[Trace, ...]:
    return Facts.parse(PRELUDE + body, "kernel.py").traces


def told(body: str) -> list[str]:
    """The events of the first trace as `kind(name)`, with what they know of the MXU."""
    return [_tell(event) for event in traces(body)[0].root.events()]


def _tell(event: Event) -> str:
    name = event.ref.name if event.ref else f"r{event.register}m{event.mxu}"
    return f"{event.kind}({name})"


def accs(body: str) -> list[str]:
    return [e.ref.name or "?" for e in traces(body)[0].root.events() if e.kind == "acc" and e.ref]


LAUNCH = "f = pl.pallas_call({kernel}, out_shape=OUT, scratch_shapes=[{scratch}])\n"


def test_scratch_reaches_a_helper_by_position() -> None:
    body = (
        "def mm(a, x):\n    pltpu.matmul_acc_lhs(a, x, 0)\n    return pltpu.matmul_pop(a)\n"
        "def kernel(x, o, acc):\n    o[...] = mm(acc, x[...])\n"
    ) + LAUNCH.format(kernel="kernel", scratch="ACC")
    assert told(body) == ["load(x)", "acc(acc)", "pop(acc)", "store(o)"]


def test_partial_binds_keywords_and_positions() -> None:
    body = (
        "def kernel(n, x, o, acc, *, scale):\n    pltpu.matmul_acc_lhs(acc, x[...], 0)\n"
    ) + LAUNCH.format(kernel="functools.partial(kernel, 3, scale=2)", scratch="ACC")
    assert told(body) == ["load(x)", "acc(acc)"]


def test_variadic_kernels_bind_from_the_end() -> None:
    body = (
        "def kernel(*refs):\n    *_, o, acc = refs\n    pltpu.matmul_acc_lhs(acc, 1, 0)\n"
        "    pltpu.matmul_acc_lhs(refs[-1], 1, 0)\n    o[...] = 0\n"
    ) + LAUNCH.format(kernel="kernel", scratch="ACC")
    assert [e.ref.kind for e in traces(body)[0].root.events() if e.ref] == [
        "scratch",
        "scratch",
        "operand",
    ]


def test_lists_dicts_and_loops_over_python_ranges() -> None:
    body = (
        "def kernel(x, o, accs):\n    for i, acc in enumerate(accs):\n"
        "        pltpu.matmul_push_rhs(x[...], 0, mxu_index=i)\n"
        "        pltpu.matmul_acc_lhs(accs[i], x[...], load_staged_rhs=0)\n"
    ) + LAUNCH.format(kernel="kernel", scratch="[ACC] * 2")
    assert [event for event in told(body) if event != "load(x)"] == [
        "push(r0m0)",
        "acc(accs[0])",
        "push(r0m1)",
        "acc(accs[1])",
    ]
    refs = {id(e.ref) for e in traces(body)[0].root.events() if e.kind == "acc"}
    assert len(refs) == 2


def test_scratch_given_by_name() -> None:
    body = (
        "def kernel(x, o, *, acc):\n    pltpu.matmul_acc_lhs(acc, x[...], 0)\n"
        "f = pl.pallas_call(kernel, out_shape=OUT, scratch_shapes=dict(acc=ACC))\n"
    )
    assert accs(body) == ["acc"]


def test_grid_spec_through_a_function() -> None:
    body = (
        "def kernel(x, o, acc):\n    pltpu.matmul_acc_lhs(acc, x[...], 0)\n"
        "def spec():\n    return pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=0, grid=(1,),\n"
        "        scratch_shapes=[ACC])\n"
        "f = pl.pallas_call(kernel, out_shape=OUT, grid_spec=spec())\n"
    )
    assert accs(body) == ["acc"]


def test_conditions_on_the_grid_are_known() -> None:
    body = (
        "def kernel(x, o, acc):\n    k = pl.program_id(1)\n"
        "    @pl.when(k == 0)\n    def _():\n        acc[...] = 0\n"
        "    @pl.when(k == pl.num_programs(1) - 1)\n    def _():\n        o[...] = acc[...]\n"
    ) + LAUNCH.format(kernel="kernel", scratch="ACC")
    found = [r.test for r in _regions(traces(body)[0].root) if r.kind == "branch"]
    assert found == [GridTest(1, "first"), GridTest(1, "last")]


def _regions(region: Region) -> list[Region]:
    inner = [item for item in region.items if isinstance(item, Region)]
    return inner + [found for item in inner for found in _regions(item)]


def test_traced_loops_and_scopes() -> None:
    body = (
        "def kernel(x, o):\n    def scope(acc):\n        def step(i, c):\n"
        "            pltpu.matmul_acc_lhs(acc, x[...], 0)\n            return c\n"
        "        jax.lax.fori_loop(0, 4, step, None)\n"
        "    pl.run_scoped(scope, ACC)\n"
        "f = pl.pallas_call(kernel, out_shape=OUT)\n"
    )
    assert accs(body) == ["acc"]
    assert "loop" in {r.kind for r in _regions(traces(body)[0].root)}


def test_unknown_code_is_an_escape() -> None:
    body = (
        "from elsewhere import helper\ndef kernel(x, o, acc):\n    helper(acc)\n"
    ) + LAUNCH.format(kernel="kernel", scratch="ACC")
    assert told(body) == ["escape(acc)"]


def test_a_changed_list_is_not_trusted() -> None:
    body = (
        "def kernel(x, o, acc):\n    pltpu.matmul_acc_lhs(acc, x[...], 0)\n"
        "scratch = [ACC]\nscratch.append(ACC)\n"
        "f = pl.pallas_call(kernel, out_shape=OUT, scratch_shapes=scratch)\n"
    )
    events = list(traces(body)[0].root.events())
    assert all(e.ref is None or e.ref.allocation is None for e in events)


def test_a_factory_of_kernels_and_methods() -> None:
    body = (
        "def make(n):\n    def kernel(x, o, acc):\n        pltpu.matmul_acc_lhs(acc, x[...], n)\n"
        "    return kernel\n"
        "class Op:\n    def body(self, x, o, acc):\n        pltpu.matmul_acc_lhs(acc, x[...], 0)\n"
        "    def run(self):\n        return pl.pallas_call(self.body, out_shape=OUT,\n"
        "            scratch_shapes=[ACC])\n"
    ) + LAUNCH.format(kernel="make(1)", scratch="ACC")
    registers = [
        event.register
        for trace in traces(body)
        for event in trace.root.events()
        if event.kind == "acc" and event.ref and event.ref.kind == "scratch"
    ]
    assert sorted(map(str, registers)) == ["0", "1"]


def test_recursion_and_endless_nesting_end() -> None:
    body = (
        "def kernel(x, o, acc):\n    kernel(x, o, acc)\n    pltpu.matmul_acc_lhs(acc, x[...], 0)\n"
    ) + LAUNCH.format(kernel="kernel", scratch="ACC")
    assert "acc" in accs(body)
