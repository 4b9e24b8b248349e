"""What users call."""

import jax

from .kernels.matmul import matmul
from .kernels.scale import Scaler, scale


@jax.jit
def linear(x, weights):
    return scale(matmul(x, weights), 2.0)


class Layer:
    def __init__(self, factor):
        self.scaler = Scaler(factor)

    def __call__(self, x):
        return self.scaler.run(x)
