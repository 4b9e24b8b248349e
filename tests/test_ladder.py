"""The ladder on real kernels: its stages, its numbers, and what may be missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from climbing import climb, names, write
from kernels import MXU, WGMMA
from pallas_fix.targets import Target
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.environment import environment
from pallas_fix.verify.judge import judge
from pallas_fix.verify.ladder import Ladder, Limits
from pallas_fix.verify.verdict import Level, Stage

MXU_CASE = "matmul(bf16[64,256], bf16[256,256])"
WGMMA_CASE = "matmul(f16[64,64], f16[64,128])"
ALL = ["import", "trace", "lower", "compile", "run"]


@pytest.fixture(scope="module")
def ladder() -> Iterator[Ladder]:
    limits = Limits(wall=60, output=1 << 20, memory=8 << 30)
    with Ladder(Path(sys.executable), limits=limits) as ladder:
        yield ladder


@pytest.mark.newest
@pytest.mark.compile
@pytest.mark.parametrize("case", [MXU_CASE, "main()"])
def test_an_accumulator_in_vmem_and_its_repair(ladder: Ladder, tmp_path: Path, case: str) -> None:
    before = MXU.replace("pltpu.ACC(0)", "pltpu.VMEM")
    result = climb(ladder, tmp_path, MXU, case, before=before)
    assert names(result.before.stages) == ["import", "trace fails", "run"]
    failure = result.before.stages[1]
    assert failure.error == "ValueError"
    assert failure.message == "Expected an accumulator ref, got Ref<vmem>{float32[64,256]}"
    line = next(n for n, text in enumerate(MXU.split("\n"), 1) if "acc_lhs" in text)
    assert failure.where == f"mod.py:{line}"
    assert names(result.after.stages) == ALL
    assert {"matmul", "kernel", "kernel.<locals>.scope"} <= result.after.entered
    verdict = judge(["kernel.<locals>.scope"], [result])
    if case == MXU_CASE:
        assert verdict.level is Level.EQUAL
        assert verdict.evidence.startswith(
            "the same numbers, bit for bit, on CPU (emulated MXU) (2 sets of inputs); "
            "compiled for tpu7x (libtpu "
        )
    else:
        assert verdict.level is Level.COMPILED
        assert "every output holds one number only" in verdict.evidence
    assert verdict.before_failed.startswith("ValueError: Expected an accumulator ref")


@pytest.mark.compile
def test_wgmma_compiles_for_hopper_and_is_refused_for_blackwell(
    ladder: Ladder, tmp_path: Path
) -> None:
    write(tmp_path, {"mod.py": WGMMA})
    case = [parse_case(WGMMA_CASE)]
    hopper, blackwell = ladder.check(
        tmp_path, tmp_path / "mod.py", WGMMA, WGMMA, case, ["h100", "b200"]
    )
    assert names(hopper.after.stages)[:4] == ALL[:4]
    [taken] = hopper.after.resources
    assert taken.kernel == "kernel"
    assert 0 < taken.registers <= 255
    assert taken.spilled == 0
    assert judge(["kernel"], [hopper]).evidence.startswith("compiled for h100 (nvidia-cuda-nvcc")
    assert names(blackwell.after.stages) == ["import", "trace", "lower", "compile fails"]
    assert "wgmma" in blackwell.after.stages[-1].message


@pytest.mark.newest
@pytest.mark.compile
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("y_ref[...]", "y_ref[:, :128]", "The pushed RHS must be 256x256"),
        ("staging_register=0", "staging_register=9", "invalid staging register: 9"),
    ],
)
def test_what_the_tpu_compiler_refuses_has_a_line(
    ladder: Ladder, tmp_path: Path, old: str, new: str, message: str
) -> None:
    failure = climb(ladder, tmp_path, MXU.replace(old, new), MXU_CASE).after.stages[-1]
    line = next(n for n, text in enumerate(MXU.split("\n"), 1) if old in text)
    assert (failure.stage, failure.where) == (Stage.COMPILE, f"mod.py:{line}")
    assert message in failure.message
    assert "view" not in failure.message
    assert "\n" not in failure.message


@pytest.mark.newest
@pytest.mark.compile
def test_a_chip_without_accumulators(ladder: Ladder, tmp_path: Path) -> None:
    failure = climb(ladder, tmp_path, MXU, MXU_CASE, target="v6e").after.stages[-1]
    assert (failure.ok, failure.message) == (False, "Accumulators are not available on TPU v6e")


@pytest.mark.compile
def test_interpret_mode_of_the_user_is_not_what_is_compiled(ladder: Ladder, tmp_path: Path) -> None:
    text = MXU.replace("pl.pallas_call(kernel,", "pl.pallas_call(kernel, interpret=True,")
    text = text.replace("pltpu.ACC(0)", "pltpu.VMEM")
    assert names(climb(ladder, tmp_path, text, MXU_CASE).after.stages) == ["import", "trace fails"]


@pytest.mark.newest
@pytest.mark.compile
def test_launches_at_import_are_collected(ladder: Ladder, tmp_path: Path) -> None:
    text = MXU + "\n\nmain()\n"
    result = climb(ladder, tmp_path, text, "<module>()")
    assert names(result.after.stages) == ALL
    assert "kernel" in result.after.entered
    bad = climb(ladder, tmp_path, text.replace("pltpu.ACC(0)", "pltpu.VMEM"), "<module>()")
    assert names(bad.after.stages) == ["import fails"]
    assert "Expected an accumulator ref" in bad.after.stages[0].message


HELPERS = """\
import jax, jax.numpy as jnp
def double(x): return x * 2
"""


@pytest.mark.compile
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kernels/ops/mod.py", "from . import helpers\nfrom ..top import N\n"),
        ("src/kernels/ops/mod.py", "import kernels.top\nfrom kernels.ops import helpers\n"),
        ("tests/mod.py", "import conftest_helper as helpers\nimport kernels.top\n"),
        ("tool/script-1.py", "import kernels.ops.helpers as helpers\n"),
        ("loose/ops/mod.py", "from . import helpers\n"),
    ],
)
def test_files_are_imported_as_their_project_imports_them(
    ladder: Ladder, tmp_path: Path, name: str, text: str
) -> None:
    source = "src/" if name.startswith("src") else ""
    write(
        tmp_path,
        {
            f"{source}kernels/__init__.py": "",
            f"{source}kernels/top.py": "N = 1\n",
            f"{source}kernels/ops/__init__.py": "",
            f"{source}kernels/ops/helpers.py": HELPERS,
            "loose/ops/helpers.py": HELPERS,
            "tests/conftest.py": "",
            "tests/conftest_helper.py": HELPERS,
        },
    )
    text += "def run(x, n=1):\n    return helpers.double(x) + n\n"
    result = climb(ladder, tmp_path, text, "run(f32[8], n=2)", name=name)
    assert names(result.after.stages)[:3] == ["import", "trace", "lower"], result.after.stages[-1]
    assert result.after.entered == {"run"}


@pytest.mark.compile
def test_arguments_of_every_kind(ladder: Ladder, tmp_path: Path) -> None:
    text = """\
    import jax, jax.numpy as jnp
    def f(x, key, pair, named, *, flag, name):
        assert x.shape == (2, 3) and x.dtype == jnp.bfloat16
        assert jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        assert pair[0].dtype == jnp.int8 and pair[1] == 4
        assert named["k"].shape == () and flag is None and name == "n"
        return {"x": x, "none": None, "word": "word"}
    def make():
        return (jnp.ones((2, 3), jnp.bfloat16), jax.random.key(0), (jnp.ones(3, "i1"), 4),
                {"k": jax.ShapeDtypeStruct((), "float32")}), {"flag": None, "name": "n"}
    """
    case = "f(bf16[2,3], key<fry>[], (i8[3], 4), {'k': f32[]}, flag=None, name='n')"
    for one in (case, "f = make"):
        result = climb(ladder, tmp_path, text, one)
        assert names(result.after.stages) == ALL, result.after.stages[-1]


@pytest.mark.compile
@pytest.mark.parametrize(
    ("after", "same", "level"),
    [
        ("x + x", True, Level.EQUAL),
        ("x * 2.0000002", False, Level.REFUTED),
        ("(x * 2).astype('bfloat16')", False, Level.REFUTED),
    ],
)
def test_numbers_are_compared_bit_for_bit_where_there_is_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, same: bool, level: Level
) -> None:
    """The processor stands in for the device: what is compared is what this test is about."""

    def on_cpu(target: Target, folder: Path, device: bool) -> dict[str, str]:
        return environment(target, folder, device) | {"JAX_PLATFORMS": "cpu"}

    monkeypatch.setattr("pallas_fix.verify.process.environment", on_cpu)
    monkeypatch.setattr("pallas_fix.verify.devices.likely", lambda platform: True)
    monkeypatch.setattr("pallas_fix.verify.devices.matches", lambda kind, name: name == "cpu")
    text = "def f(x):\n    return {}\n"
    with Ladder(Path(sys.executable)) as ladder:
        result = climb(
            ladder, tmp_path, text.format(after), "f(f32[8])", before=text.format("x * 2")
        )
    assert names(result.after.stages) == [*ALL, "device"]
    assert result.device == "cpu"
    assert [(one.stage, one.same) for one in result.compared] == [("run", same), ("device", same)]
    assert judge(["f"], [result]).level is level


def test_an_interpreter_without_jax(tmp_path: Path) -> None:
    environment_folder = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment_folder], check=True)
    with Ladder(environment_folder / "bin" / "python") as ladder:
        result = climb(ladder, tmp_path, "def f(): pass\n", "f()")
    assert result.after.stages[0].ok is None
    assert "No module named 'jax'" in result.after.stages[0].message
    verdict = judge(["f"], [result])
    assert verdict.level is Level.UNVERIFIED
    assert "No module named 'jax'" in verdict.evidence


def test_no_such_interpreter(tmp_path: Path) -> None:
    with Ladder(tmp_path / "python") as ladder:
        result = climb(ladder, tmp_path, "def f(): pass\n", "f()")
    assert "cannot start" in result.after.stages[0].message


@pytest.mark.compile
@pytest.mark.parametrize(
    ("target", "package", "extra"),
    [("tpu7x", "libtpu", "tpu"), ("h100", "jax_cuda13_plugin", "gpu")],
)
def test_a_missing_extra_is_no_failure(
    tmp_path: Path, target: str, package: str, extra: str
) -> None:
    text = f"""\
    import os, sys
    sys.modules[{package!r}] = None
    os.environ.pop("TPU_LIBRARY_PATH", None)
    def f(x):
        return x
    """
    with Ladder(Path(sys.executable)) as ladder:
        result = climb(ladder, tmp_path, text, "f(f32[8])", target=target)
    compiled = result.after.stages[3]
    assert compiled.stage is Stage.COMPILE
    assert compiled.ok is None
    assert compiled.message == f"stage not available: install pallas-fix[{extra}]"
    verdict = judge(["f"], [result])
    assert verdict.level is Level.LOWERED
    assert verdict.evidence.endswith(f"install pallas-fix[{extra}]")
