import pytest
pl = pytest.importorskip("jax.experimental.pallas")
pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
def test(): return pltpu.TPUCompilerParams(), pl.load
