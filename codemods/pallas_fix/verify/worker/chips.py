"""The target as jax sees it: an abstract device to trace for, a compiler to ask."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
from contextlib import suppress
from importlib import metadata
from typing import Any

import jax
import jax.numpy
from jax.experimental import topologies

Target = dict[str, Any]


class Unavailable(Exception):
    """A stage that cannot be asked here, with what is missing and how to get it."""


def preload(target: Target) -> None:
    """Import what every job of this target imports anyway; no backend may start before a fork."""
    names = _TPU_MODULES if target["platform"] == "tpu" else _GPU_MODULES
    for name in ("jaxlib.mlir.dialects.mhlo", *names):
        with suppress(ImportError):  # a saving only; who needs one that fails will say so
            importlib.import_module(name)
    if target["platform"] == "tpu":
        with suppress(ImportError, OSError, AttributeError):
            ctypes.CDLL(importlib.import_module("libtpu").get_library_path())


_TPU_MODULES = (
    "jax.experimental.pallas.tpu",
    "jax._src.pallas.mosaic.pallas_call_registration",
)
_GPU_MODULES = (
    "jax.experimental.pallas.mosaic_gpu",
    "jax.experimental.pallas.triton",
    "jax._src.pallas.mosaic_gpu.interpret.interpret_pallas_call",
    "jax._src.pallas.mosaic_gpu.pallas_call_registration",
    "jax._src.pallas.triton.pallas_call_registration",
)


def mesh(target: Target) -> Any:
    """A context in which code is traced as for the target, though there is none.

    `pltpu.get_tpu_info` and all that ask for the chip read the abstract device
    (jax/_src/tpu_info.py).
    """
    device = jax.sharding.AbstractDevice(
        device_kind=target["kind"], num_cores=target["cores"], platform=target["platform"]
    )
    return jax.sharding.use_abstract_mesh(
        jax.sharding.AbstractMesh((), (), (), abstract_device=device)
    )


def lowering_platform(target: Target) -> str:
    return "tpu" if target["platform"] == "tpu" else "cuda"


def placement(target: Target) -> jax.sharding.Sharding:
    """A sharding on the target's chip, for compiling. Raises Unavailable."""
    tpu = target["platform"] == "tpu"
    if tpu and not (_installed("libtpu") or os.environ.get("TPU_LIBRARY_PATH")):
        raise _missing("tpu")
    if not tpu and not (_installed("jax_cuda13_plugin") or _installed("jax_cuda12_plugin")):
        raise _missing("gpu")
    try:
        if tpu:
            topology = topologies.get_topology_desc(
                topology_name=target["topology"], platform="tpu"
            )
        else:
            topology = topologies.get_topology_desc(
                platform="cuda", topology=target["topology"], target_config=_gpu_config(target)
            )
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        raise Unavailable(
            f"stage not available: no compiler for {target['name']}: {first}"
        ) from error
    return jax.sharding.SingleDeviceSharding(topology.devices[0])


NO_PTXAS = "No PTX compilation provider"
"""What XLA says when there is neither ptxas nor a library of it."""


def as_unavailable(error: Exception, target: Target) -> Unavailable | None:
    """The error of a compile as a missing extra, if that is what it is."""
    return _missing(target["platform"]) if NO_PTXAS in str(error) else None


def tools(target: Target) -> list[str]:
    """Names and versions of what compiles for the target: jax first."""
    names = ["jax"]
    if target["platform"] == "tpu":
        names.append("libtpu")
    else:
        names += ["nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12"]
    return [f"{name} {version}" for name in names if (version := _version(name))]


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return jax.__version__ if name == "jax" else ""


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _missing(extra: str) -> Unavailable:
    return Unavailable(f"stage not available: install pallas-fix[{extra}]")


def _gpu_config(target: Target) -> str:
    """A stream_executor.GpuTargetConfigProto in text form (xla/stream_executor)."""
    gpu = target["gpu"]
    feature = "feature_extension: ACCELERATED_FEATURES" if gpu["accelerated"] else ""
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {gpu["shared_per_core"]}
  threads_per_core_limit: 2048
  core_count: {target["cores"]}
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {gpu["bandwidth"]}
  l2_cache_size: {gpu["l2_cache"]}
  clock_rate_ghz: {gpu["clock"]}
  device_memory_size: {gpu["memory"]}
  shared_memory_per_block_optin: {gpu["shared_per_block"]}
  cuda_compute_capability {{ major: {gpu["major"]} minor: {gpu["minor"]} {feature} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
device_description_str: "{target["kind"]}"
"""
