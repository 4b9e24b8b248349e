"""Launches each of them, from the top level of a script: no function of it can be a case."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import kernels
from kernels import Config, Module

assert "sitecustomize" in sys.modules


def one(size):
    return jnp.ones((size, 128))


if __name__ == "__main__":
    kernels.launch(one(8))
    kernels.launch(one(8), factor=3)
    kernels.launch(one(8), dtype=jnp.bfloat16)
    kernels.launch(one(8), dtype=jnp.zeros(1, "int8").dtype)
    kernels.rebinding(one(8), 2.5)
    kernels.rebinding(one(8), 1.0, one(16), factor=4)
    kernels.jitted(one(16), 2)
    kernels.jitted(one(16), factor=2)
    jax.grad(lambda x: kernels.custom(x).sum())(one(24))
    pair = (np.ones((8, 128), np.float64), one(8))
    lengths = np.array([3, 7], np.int32)
    kernels.tree({"pair": pair, "one": jnp.zeros((), jnp.bfloat16)}, lengths)
    kernels.make(5)(one(8))
    kernels.configured(one(8), Config(6))
    Module().method(one(8))
    Module.static(one(40))
    Module.of_class(one(48))
    jax.vmap(kernels.jitted, in_axes=(0, None))(jnp.ones((2, 56, 128)), 7)
