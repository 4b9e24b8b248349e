import jax, pytest, unittest
from jax.experimental.pallas import tpu as pltpu
from jax.experimental import pallas as pl
@pytest.mark.skipif(jax.__version_info__ >= (0, 7), reason="old")
def test_old():
    assert pltpu.TPUCompilerParams
@unittest.skipUnless(hasattr(pl, "load"), "gone")
def test_load():
    pl.load
@pytest.mark.skipif(not hasattr(pltpu, "repeat"), reason="gone")
class TestRepeat:
    def test(self): pltpu.repeat(1, 2, 0)
