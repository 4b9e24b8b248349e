"""Runs the tests that need a Hopper GPU, which pytest does not collect by itself.

    python tests/device/run.py            # or: pytest -m device tests/device

It needs a jax that sees the GPU, and pytest; nothing of pallas-fix has to be installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

if __name__ == "__main__":
    source = f"pythonpath={ROOT / 'codemods'} {ROOT / 'tools'}"
    sys.exit(pytest.main([str(HERE), "-m", "device", "-o", source, *sys.argv[1:]]))
