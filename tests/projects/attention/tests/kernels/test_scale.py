import jax.numpy as jnp
import numpy as np

from shapes_lab.kernels.scale import Scaler, scale
from shapes_lab.layers import Layer


def test_scale():
    x = np.arange(1024, dtype=np.float32).reshape(8, 128)
    np.testing.assert_array_equal(scale(x, 3), 3 * x)


def test_layer():
    x = jnp.ones((16, 128))
    np.testing.assert_array_equal(Layer(4)(x), 4 * x)


def test_static_method():
    x = jnp.ones((24, 128))
    np.testing.assert_array_equal(Scaler.twice(x), 2 * x)
