"""A script that is no test."""

import jax.numpy as jnp

from shapes_lab.layers import linear

if __name__ == "__main__":
    print(linear(jnp.ones((128, 256), "bfloat16"), jnp.ones((256, 256), "bfloat16")).shape)
