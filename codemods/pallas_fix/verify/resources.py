"""Reads what ptxas says of the GPU kernels that it has compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pallas_fix.verify.verdict import Resources

ASK = {"MOSAIC_GPU_DUMP_PTXAS": "1"}
"""Has jax print the words of `ptxas -v` (jaxlib/mosaic/gpu/custom_call.cc)."""

_KERNEL = re.compile(
    r"Compiling entry function '(?P<name>\w+?)(?:_mosaic_gpu_kernel)?' for"
    r".*?(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
    r".*?Used (?P<registers>\d+) registers",
    re.DOTALL,
)


def resources(printed: str) -> Iterator[Resources]:
    """Yield the kernels that are told of in what a job has printed."""
    for told in _KERNEL.finditer(printed):
        spilled = int(told["stores"]) + int(told["loads"])
        yield Resources(told["name"], int(told["registers"]), spilled)
