"""Which MXU an accumulator works on, followed through kernels."""

from __future__ import annotations

import textwrap

import pytest

from pallas_fix.facts import Facts
from pallas_fix.rules.base import Reason
from pallas_fix.rules.mxu.index import allocation_index, mxu_index, staged_feeds

HEAD = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


"""
TYPE = "pltpu.VMEM((64, 256), jnp.float32)"


def kernel(body: str, parameters: str = "acc", types: str = TYPE) -> Facts:
    """A module whose kernel runs `body` in a scope with some refs."""
    lines = textwrap.indent(textwrap.dedent(body), "        ")
    text = f"""{HEAD}def kernel(x_ref, y_ref, o_ref, n):
    def scope({parameters}):
{lines}
    pl.run_scoped(scope, {types})


def run(x, y):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((64, 256), jnp.float32))(x, y)
"""
    return Facts.parse(text, "kernel.py")


def indices(module: Facts) -> list[int | str]:
    """The index of each scoped ref of the kernel, or the code of the reason."""
    trace = module.traces[0]
    found = [mxu_index(module, trace, ref) for ref in trace.refs if ref.kind == "scoped"]
    return [index.code if isinstance(index, Reason) else index for index in found]


PUSH = "pltpu.matmul_push_rhs(y_ref[...], staging_register={}, mxu_index={})"
ACC = "pltpu.matmul_acc_lhs({}, x_ref[...], load_staged_rhs={})"


@pytest.mark.parametrize("mxu", [0, 1])
def test_the_push_before_it_says_the_index(mxu: int) -> None:
    module = kernel(f"{PUSH.format(0, mxu)}\n{ACC.format('acc', 0)}")
    assert indices(module) == [mxu]


def test_each_register_leads_to_its_own_push() -> None:
    body = f"""
        {PUSH.format(0, 1)}
        {PUSH.format(1, 0)}
        {ACC.format("a", 1)}
        {ACC.format("b", 0)}
    """
    assert indices(kernel(body, "a, b", f"{TYPE}, {TYPE}")) == [0, 1]


def test_a_register_of_both_mxus_leaves_it_open() -> None:
    body = f"""
        {PUSH.format(0, 0)}
        {PUSH.format(0, 1)}
        {ACC.format("a", 0)}
        {ACC.format("b", 0)}
    """
    assert indices(kernel(body, "a, b", f"{TYPE}, {TYPE}")) == ["mxu-unknown", "mxu-unknown"]


def test_what_another_accumulator_loads_is_gone() -> None:
    body = f"""
        {PUSH.format(0, 0)}
        {PUSH.format(0, 1)}
        {ACC.format("a", 0)}
        {ACC.format("b", 0)}
    """
    known = "pltpu.ACC(1)((64, 256), jnp.float32)"
    assert indices(kernel(body, "a, b", f"{known}, {TYPE}")) == [1, 0]


def test_without_a_load_the_weights_that_an_mxu_holds_count() -> None:
    body = f"""
        {PUSH.format(1, 1)}
        {ACC.format("a", 1)}
        {ACC.format("b", None)}
    """
    assert indices(kernel(body, "a, b", f"{TYPE}, {TYPE}")) == [1, 1]


def test_nothing_pushed_leaves_it_open() -> None:
    assert indices(kernel(ACC.format("acc", 0))) == ["mxu-unknown"]


def test_an_accumulator_that_is_only_popped_may_be_anywhere() -> None:
    assert indices(kernel("o_ref[...] = pltpu.matmul_pop(acc)")) == [0]


def test_an_mxu_that_does_not_exist_is_no_index() -> None:
    module = kernel(f"{PUSH.format(0, 2)}\n{ACC.format('acc', 0)}")
    assert indices(module) == ["mxu-unknown"]


def test_an_index_that_is_not_constant_leaves_it_open() -> None:
    module = kernel(f"{PUSH.format(0, 'n')}\n{ACC.format('acc', 0)}")
    assert indices(module) == ["mxu-unknown"]


def test_a_loop_that_pushes_ahead_stays_on_its_mxu() -> None:
    body = f"""
        {PUSH.format(0, 1)}

        @pl.loop(0, 4)
        def _(k):
            {ACC.format("acc", 0)}
            {PUSH.format(0, 1)}

        {ACC.format("acc", 0)}
    """
    assert indices(kernel(body)) == [1]


def test_both_branches_of_a_condition_load_the_same_push() -> None:
    body = f"""
        {PUSH.format(0, 0)}
        if n:
            {ACC.format("a", 0)}
        else:
            {ACC.format("a", 0)}
        {PUSH.format(0, 1)}
        {ACC.format("b", 0)}
    """
    assert indices(kernel(body, "a, b", f"{TYPE}, {TYPE}")) == [0, 1]


def test_one_allocation_for_both_mxus_has_no_index() -> None:
    body = f"""
        for i, acc in enumerate(accs):
            {PUSH.format(0, "i")}
            {ACC.format("acc", 0)}
    """
    module = kernel(body, "accs", f"[{TYPE}] * 2")
    trace = module.traces[0]
    first = next(ref for ref in trace.refs if ref.kind == "scoped")

    assert indices(module) == [0, 1]
    assert first.allocation is not None
    assert isinstance(allocation_index(module, first.allocation.node), Reason)


def test_false_loads_where_nothing_is_held_yet() -> None:
    body = f"""
        {PUSH.format(1, 0)}
        {ACC.format("acc", False)}
        {ACC.format("acc", False)}
    """
    module = kernel(body)
    trace = module.traces[0]
    registers = [[p.register for p in pushes] for pushes in staged_feeds(module, trace).values()]

    assert registers == [[1]]
