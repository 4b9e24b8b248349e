"""Spares a TPU run the import of jax's GPU interpreter, which takes seconds.

`_pallas_call_lowering` of jax/_src/pallas/pallas_call.py, since jax 0.10.2, imports both
interpreters before it looks which one is asked for, and does without one that cannot be imported.
Nothing else imports the module.
"""

from __future__ import annotations

import sys
from typing import cast

_MODULE = "jax._src.pallas.mosaic_gpu.interpret.interpret_pallas_call"


def do_without() -> None:
    """Let the import fail at once, unless the module is there already."""
    modules = cast(dict[str, object], sys.modules)
    modules.setdefault(_MODULE, None)


def do_with() -> None:
    """Let it be imported again, where GPU kernels are interpreted too."""
    if sys.modules.get(_MODULE, _MODULE) is None:
        del sys.modules[_MODULE]
