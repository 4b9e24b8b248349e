"""What verification costs: seconds for 1, 10 and 100 kernels, cold and warm, and jax's share.

    python benchmarks/verify.py [--kernels 1 10 100] [--until run]

Each kernel is a matmul of the explicit MXU API, in a text of its own, so that nothing is the same
twice. *Cold* starts a worker, which imports jax; *warm* has one. The last rows are what jax itself
needs in a process of its own for one such kernel: its import, and trace, lower and compile.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from pallas_fix.targets import find_target
from pallas_fix.verify.cases import parse_case
from pallas_fix.verify.environment import environment
from pallas_fix.verify.ladder import Ladder
from pallas_fix.verify.verdict import Stage

CASE = parse_case("matmul(bf16[64,256], bf16[256,256])")

KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel{n}(x_ref, y_ref, o_ref):
    def scope(acc):
        pltpu.matmul_push_rhs(y_ref[...], staging_register=0, mxu_index=0)
        pltpu.matmul_acc_lhs(acc, x_ref[...], load_staged_rhs=0)
        o_ref[...] = pltpu.matmul_pop(acc)

    pl.run_scoped(scope, pltpu.ACC(0)((64, 256), jnp.float32))


def matmul(x, y):
    return pl.pallas_call(kernel{n}, out_shape=jax.ShapeDtypeStruct((64, 256), jnp.float32))(x, y)
"""

ITSELF = """
import json, time
start = time.perf_counter()
import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.experimental.pallas import tpu
imported = time.perf_counter()
import kernels
device = topologies.get_topology_desc(topology_name="tpu7x:2x2x1", platform="tpu").devices[0]
place = jax.sharding.SingleDeviceSharding(device)
abstract = jax.sharding.AbstractDevice(device_kind="TPU7x", num_cores=1, platform="tpu")
mesh = jax.sharding.AbstractMesh((), (), (), abstract_device=abstract)
avals = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in ((64, 256), (256, 256))]
with jax.sharding.use_abstract_mesh(mesh):
    jitted = jax.jit(kernels.matmul, in_shardings=place, out_shardings=place)
    jitted.trace(*avals).lower(lowering_platforms=("tpu",)).compile()
done = time.perf_counter()
print(json.dumps([imported - start, done - imported]))
"""


def check(ladder: Ladder, root: Path, numbers: Iterable[int]) -> float:
    """Seconds to verify these kernels; all of them must pass."""
    start = time.perf_counter()
    for number in numbers:
        path = root / f"k{number}.py"
        text = KERNEL.replace("{n}", str(number))
        path.write_text(text)
        [result] = ladder.check(root, path, text, text, [CASE], ["tpu7x"])
        failed = [stage for stage in result.after.stages if not stage.ok]
        if failed:
            raise SystemExit(f"{failed[0].stage}: {failed[0].message}")
    return time.perf_counter() - start


def itself(root: Path) -> tuple[float, float]:
    """Seconds that jax needs to import, and to trace, lower and compile one kernel."""
    (root / "kernels.py").write_text(KERNEL.replace("{n}", ""))
    (root / "itself.py").write_text(ITSELF)
    done = subprocess.run(
        [sys.executable, "itself.py"],
        cwd=root,
        env=os.environ | environment(find_target("tpu7x"), root, device=False),
        stdout=subprocess.PIPE,
        check=True,
    )
    imported, compiled = json.loads(done.stdout)
    return imported, compiled


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure verification.")
    parser.add_argument("--kernels", type=int, nargs="*", default=[1, 10, 100])
    parser.add_argument("--until", type=Stage, default=Stage.COMPILE)
    options = parser.parse_args()
    print(f"until {options.until}: {'':20} {'cold s':>8} {'warm s':>8} {'warm s each':>12}")
    with tempfile.TemporaryDirectory(prefix="pallas-fix-") as name:
        root = Path(name)
        first = 0
        for count in options.kernels:
            with Ladder(Path(sys.executable), until=options.until) as ladder:
                cold = check(ladder, root, range(first, first + count))
                warm = check(ladder, root, range(first + count, first + 2 * count))
            first += 2 * count
            print(f"{f'{count} kernels':32} {cold:8.2f} {warm:8.2f} {warm / count:12.2f}")
        imported, compiled = itself(root)
    print(f"{'jax itself: import':32} {imported:8.2f}")
    print(f"{'jax itself: one kernel':32} {compiled:8.2f}")


if __name__ == "__main__":
    main()
