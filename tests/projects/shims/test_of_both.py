import jax
import jax.numpy as jnp
import numpy as np
import pytest

pltpu = pytest.importorskip("jax.experimental.pallas.tpu")
pytest.importorskip("jax", minversion="0.4.30")

from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu  # noqa: E402

needs_load = pytest.mark.skipif(not hasattr(pl, "load"), reason="pl.load is gone")
old_jax = pytest.mark.skipif(jax.__version_info__ >= (0, 7), reason="renamed in 0.7")


@needs_load
def test_load():
    def kernel(x_ref, o_ref):
        pl.store(o_ref, (slice(None),), pl.load(x_ref, (slice(None),)))

    x = jnp.arange(128.0)
    made = pl.pallas_call(kernel, out_shape=x, interpret=True)(x)
    np.testing.assert_array_equal(made, x)


@old_jax
class TestOldNames:
    def test_params(self):
        assert tpu.TPUCompilerParams().dimension_semantics is None

    def test_space(self):
        assert tpu.TPUMemorySpace.VMEM


def test_gone():
    if jax.__version_info__ < (0, 9):
        pytest.skip("still there")
    with pytest.raises(AttributeError):
        pl.load


def test_warns():
    with pytest.warns(DeprecationWarning):
        tpu.TPUCompilerParams()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ANY", marks=pytest.mark.skipif(not hasattr(tpu, "ANY"), reason="gone")),
        pytest.param(tpu.CompilerParams, marks=old_jax),
    ],
)
def test_names(name):
    assert name
