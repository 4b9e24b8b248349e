import importlib
import jax
pltpu = importlib.import_module("jax.experimental.pallas.tpu")
P = pltpu.TPUCompilerParams
