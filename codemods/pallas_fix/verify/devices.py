"""Is there an accelerator? Asked of the system first: starting jax to hear "no" takes seconds."""

from __future__ import annotations

import ctypes
from pathlib import Path

_GOOGLE = "0x1ae0"
"""The PCI vendor of TPUs (jax/_src/hardware_utils.py)."""


def likely(platform: str) -> bool:
    """True if this machine seems to have a device of that platform, `tpu` or `gpu`."""
    return _tpu() if platform == "tpu" else _gpu()


def _tpu() -> bool:
    for vendor in Path("/sys/bus/pci/devices").glob("*/vendor"):
        try:
            if vendor.read_text().strip() == _GOOGLE:
                return True
        except OSError:
            continue
    return any(Path("/dev").glob("accel[0-9]*"))


def _gpu() -> bool:
    if not any(Path("/dev").glob("nvidia[0-9]*")) and not Path("/dev/dxg").exists():
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    found = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return found and count.value > 0


def matches(kind: str, name: str) -> bool:
    """True if a device of kind `name`, as jax names it, runs what is compiled for `kind`.

    H100, H200, GH200 are one architecture, sm_90a, as are B200 and GB200 (CUDA documentation,
    "CUDA GPU Compute Capability").
    """
    families = (("H100", "H200", "GH200"), ("B200", "GB200"), ("A100", "A30"))
    for family in families:
        if any(word in kind for word in family):
            return any(word in name for word in family)
    return kind == name
