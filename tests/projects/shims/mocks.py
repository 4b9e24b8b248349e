from unittest import mock
import jax
from jax.experimental.pallas import tpu as pltpu
with mock.patch.object(pltpu, "TPUCompilerParams", create=True):
    pass
with mock.patch("jax.experimental.pallas.tpu.TPUCompilerParams"):
    pass
