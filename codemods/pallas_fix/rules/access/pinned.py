"""Triton kernels whose launch leaves the backend to jax, which has not always chosen Triton."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from packaging.version import Version

from pallas_fix.edits import Code, Edit, SetKeyword
from pallas_fix.facts import Facts
from pallas_fix.facts.backends import TRITON
from pallas_fix.rules.base import Reason
from pallas_fix.versions import since

HIDDEN_LAUNCH = Reason(
    "launch-hidden",
    "the launch takes arguments from elsewhere, and on some jax it must ask for Triton",
    "give compiler_params=plt.CompilerParams() to the launch",
)

# The GPU backend of pl.pallas_call without compiler_params (jax/_src/pallas/pallas_call.py):
# Triton until 0.8.3, Mosaic GPU until 0.11.1, Triton again.
_OTHER_DEFAULT = since("0.9.0", "0.11.2")


def pinned(module: Facts, node: ast.AST, versions: Iterable[Version]) -> tuple[Edit, ...] | None:
    """What makes the launches of the kernel around `node` ask for Triton, where they must.

    None where a launch takes its arguments from elsewhere, so that nobody can tell.
    """
    if not any(version in _OTHER_DEFAULT for version in versions):
        return ()
    edits: list[Edit] = []
    for launch in module.backends.launches_of(node):
        words = {keyword.arg for keyword in launch.call.keywords}
        if "compiler_params" in words or launch.kind != "pallas_call":
            continue
        if module.backends.of_launch(launch) not in (TRITON, None):
            continue
        if None in words:
            return None
        spelled = module.names.spell("triton.CompilerParams", launch.call)
        code = Code(f"{spelled.text}()")
        edits += (SetKeyword(module.span(launch.call), "compiler_params", code), *spelled.imports)
    return tuple(edits)
