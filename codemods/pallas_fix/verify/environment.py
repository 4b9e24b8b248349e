"""What the worker may see of the user's environment: what kernels need, and no secrets."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from pallas_fix.targets import Target
from pallas_fix.verify.resources import ASK

_KEPT = frozenset(
    """
    PATH LANG LANGUAGE TZ LD_LIBRARY_PATH DYLD_LIBRARY_PATH PYTHONPATH VIRTUAL_ENV CONDA_PREFIX
    CUDA_HOME CUDA_PATH CUDA_ROOT CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES
    XLA_FLAGS LIBTPU_INIT_ARGS TPU_LIBRARY_PATH JAX_ENABLE_X64 JAX_DEFAULT_MATMUL_PRECISION
    JAX_NUMPY_DTYPE_PROMOTION JAX_NUMPY_RANK_PROMOTION JAX_THREEFRY_PARTITIONABLE
    """.split()
)

_QUIET = {
    "JAX_TRACEBACK_FILTERING": "off",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_LOG_DIR": "disabled",
}

_NO_TPU = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v6e-1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "true",
}
"""Lets libtpu compile for any chip without one, silently and beside other processes.

Without the last, a second process fails on libtpu's lock file.
"""


_SAME_BITS = ("--xla_disable_hlo_passes=algsimp,fusion", "--xla_cpu_max_isa=AVX")
"""Keep XLA:CPU from computing one expression in two ways, depending on what stands around it.

Before and after are compared bit for bit. Algebra and fusion change `a / sqrt(b)` in one program
and not in another; AVX, the second for x86-64, has no fused multiply-add.
"""

_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def environment(target: Target, folder: Path, device: bool) -> dict[str, str]:
    """The environment of a worker that lives in `folder`; `device` if it is to run kernels."""
    kept = {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("LC_")
    }
    user_base = os.environ.get("PYTHONUSERBASE") or str(Path("~/.local").expanduser())
    own = {
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONUSERBASE": user_base,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    if not device:
        x86 = platform.machine().lower() in ("x86_64", "amd64")
        flags = [os.environ.get("XLA_FLAGS", ""), *_SAME_BITS[: 2 if x86 else 1]]
        own |= {"XLA_FLAGS": " ".join(filter(None, flags))} | _ONE_THREAD
        return kept | own | _QUIET | _NO_TPU | ASK
    return kept | own | _QUIET | {"JAX_PLATFORMS": "tpu" if target.platform == "tpu" else "cuda"}
