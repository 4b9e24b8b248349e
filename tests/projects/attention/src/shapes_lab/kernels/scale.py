"""A product with a number, in several forms that a launch can be reached by."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def _kernel(x_ref, out_ref, *, factor):
    out_ref[...] = x_ref[...] * factor


def scale(x, factor, dtype=jnp.float32):
    x = x.astype(dtype)  # from here on it is not what was given

    def body(x_ref, out_ref):
        _kernel(x_ref, out_ref, factor=factor)

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, dtype))(x)


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    def run(self, x):
        return _launch(x, self.body)

    def body(self, x_ref, out_ref):
        _kernel(x_ref, out_ref, factor=self.factor)

    @staticmethod
    def twice(x):
        return _launch(x, lambda x_ref, out_ref: _kernel(x_ref, out_ref, factor=2))


def _launch(x, body):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
