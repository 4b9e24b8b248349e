"""Code that cares for several versions of jax itself: nothing in it changes."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import indent

import pytest

from fixture import Fixture, all_fixtures
from pallas_fix.facts import Facts
from pallas_fix.fixpoint import fix_text
from pallas_fix.rules import all_rules

SHIMS = sorted((Path(__file__).parent / "projects" / "shims").glob("*.py"))


@pytest.mark.parametrize("path", SHIMS, ids=lambda path: path.stem)
def test_a_shim_stays_as_it_is(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    rules = [rule() for code, rule in all_rules().items() if code != "IGN001"]
    outcome = fix_text(text, str(path), rules, lambda finding: True)
    assert outcome.bug == ""
    assert outcome.text == text


IMPORTS = """import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as plt
from mine.flags import TYPED
"""
ARGUMENTS = "ref, x, y, sem, d, acc, body, s, m, kernel"
# An old form and what stands for it on newer versions.
FORMS = {
    "load": ("pl.load(ref, (pl.ds(0, 8), slice(None)))", "ref[pl.ds(0, 8), :]"),
    "store": ("pl.store(ref, (slice(None),), x)", "ref.__setitem__(slice(None), x)"),
    "dot": ("pl.dot(x, y, trans_b=True)", "jnp.dot(x, y.T)"),
    "repeat": ("pltpu.repeat(x, 2, axis=1)", "jnp.concatenate([x, x], axis=1)"),
    "params": ("pltpu.TPUCompilerParams()", "pltpu.CompilerParams()"),
    "dict": (
        "pl.pallas_call(kernel, out_shape=s, compiler_params=dict(mosaic=dict()))",
        "pl.pallas_call(kernel, out_shape=s, compiler_params=pltpu.CompilerParams())",
    ),
    "spec": (
        "pl.BlockSpec(lambda i: (i, 0), (8, 128))",
        "pl.BlockSpec((8, 128), lambda i: (i, 0))",
    ),
    "kernel": (
        "plgpu.kernel(body, out_shape=s, scratch_shapes=[])",
        "plgpu.kernel(body, out_type=s, scratch_types=[])",
    ),
    "space": ("pltpu.TPUMemorySpace.ANY", "pltpu.MemorySpace.HBM"),
    "any": ("pltpu.ANY", "pl.ANY"),
    "wait": ("pltpu.semaphore_wait(sem, 1)", "pl.semaphore_wait(sem, 1)"),
    "warps": (
        "pl.pallas_call(kernel, out_shape=s, num_warps=4, num_stages=2)",
        "pl.pallas_call(kernel, out_shape=s)",
    ),
    "gpu load": ("plgpu.load(ref, (0, slice(None)))", "plgpu.load(ref.at[0])"),
    "tree_map": ("jax.tree_map(len, x)", "jax.tree.map(len, x)"),
    "pvary": ('lax.pvary(x, "i")', 'lax.pcast(x, "i", to="varying")'),
    "mesh": ('pltpu.create_tensorcore_mesh("core")', 'pltpu.TensorCoreMesh(axis_name="core")'),
}
CHOICES = [
    "    return {old} if {test} else {new}\n",
    "    if {test}:\n        return {old}\n    return {new}\n",
    "    if not {test}:\n        r = {new}\n    else:\n        r = {old}\n    return r\n",
    "    try:\n        return {new}\n    except AttributeError:\n        return {old}\n",
    "    try:\n        r = {old}\n    except Exception:\n        r = {new}\n    return r\n",
]
TESTS = ["(jax.__version_info__ < (0, 7))", 'hasattr(pltpu, "TPUCompilerParams")', "TYPED"]


def result(text: str) -> str:
    outcome = fix_text(text, "k.py", [rule() for rule in all_rules().values()], lambda _: True)
    assert outcome.bug == ""
    return outcome.text


@pytest.mark.parametrize(("old", "new"), FORMS.values(), ids=FORMS)
def test_no_old_form_changes_in_an_arm(old: str, new: str) -> None:
    head = f"{IMPORTS}\n\ndef f({ARGUMENTS}):\n"
    alone = f"{head}    return {old}\n"
    assert result(alone) != alone
    for choice in CHOICES:
        for test in TESTS:
            text = head + choice.format(old=old, new=new, test=test)
            assert result(text) == text


REPAIRED = [
    fixture
    for fixture in all_fixtures()
    if fixture.after.text != fixture.before.text and "__future__" not in fixture.before.text
]


@pytest.mark.parametrize("fixture", REPAIRED, ids=lambda fixture: fixture.name)
def test_nothing_changes_in_a_file_for_an_older_jax(fixture: Fixture) -> None:
    code = indent(fixture.before.text, "    ")
    text = f"import jax\nif jax.__version_info__ < (0, 7):\n{code}\nelse:\n    kernel = None\n"
    outcome = fixture.fix(text)
    assert outcome.bug == ""
    assert [finding.code for finding in outcome.applied if finding.code != "IGN001"] == []


def guarded_words(text: str) -> list[str]:
    """The attributes that stand in code that is left alone."""
    facts = Facts.parse(text, "k.py")
    nodes = [node for node in ast.walk(facts.tree) if isinstance(node, ast.Attribute)]
    return [node.attr for node in nodes if facts.is_guarded(facts.span(node))]


@pytest.mark.parametrize(
    "text",
    [
        # A setting is no question about jax.
        "class K:\n"
        "    def __init__(self, config):\n"
        "        self.dtype = getattr(config, 'dtype', None)\n"
        "    def run(self, pl):\n"
        "        if self.dtype is not None:\n"
        "            pl.load\n",
        # What goes wrong there may be anything.
        "import jax\ntry:\n    jax.tree_map\nexcept Exception:\n    print()\n",
        "import jax\nif x:\n    jax.tree_map\nelse:\n    jax.tree.map\n",
        # A module of Pallas is there or not: its uses are repaired.
        "try:\n    from jax.experimental import pallas as pl\nexcept ImportError:\n    pl = None\n"
        "pl.load\n",
    ],
)
def test_other_code_is_not_left_alone(text: str) -> None:
    assert guarded_words(text) == []
