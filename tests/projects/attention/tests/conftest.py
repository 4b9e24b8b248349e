import jax
import pytest


@pytest.fixture
def normal():
    """Makes bfloat16 arrays of a shape."""

    def make(seed, *shape):
        return jax.random.normal(jax.random.key(seed), shape).astype("bfloat16")

    return make
