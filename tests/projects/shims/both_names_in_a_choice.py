import os

import jax
from jax.experimental.pallas import tpu as pltpu

Params = pltpu.CompilerParams if os.environ.get("FRESH") else pltpu.TPUCompilerParams


def params(fresh: bool):
    if fresh:
        made = pltpu.CompilerParams()
    else:
        made = pltpu.TPUCompilerParams()
    return made


def mapped(f, tree, modern):
    return (jax.tree.map if modern else jax.tree_map)(f, tree)
