import jax.numpy as jnp
import numpy as np
import pytest

from shapes_lab.kernels.matmul import matmul
from shapes_lab.layers import linear


@pytest.mark.parametrize(("rows", "block"), [(32, 32), (64, 32), (64, 64)])
def test_matmul(normal, rows, block):
    x, y = normal(0, rows, 256), normal(1, 256, 256)
    expected = jnp.dot(x, y, preferred_element_type=jnp.float32)
    np.testing.assert_allclose(matmul(x, y, block=block), expected, rtol=1e-5, atol=1e-4)


def test_linear(normal):
    x, y = normal(0, 32, 256), normal(1, 256, 256)
    expected = 2 * jnp.dot(x, y, preferred_element_type=jnp.float32)
    np.testing.assert_allclose(linear(x, y), expected, rtol=1e-5, atol=1e-4)
