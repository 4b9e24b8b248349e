"""One kernel, launched by calls of all kinds."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def body(x_ref, out_ref, *, factor=2):
    out_ref[...] = (x_ref[...] * factor).astype(out_ref.dtype)


def launch(x, *, factor=2, dtype=jnp.float32):
    kernel = functools.partial(body, factor=factor)
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, dtype))(x)


def rebinding(x, scale=1.0, /, *more, **options):
    x = jnp.concatenate([x, *more])
    options = {"factor": scale} | options
    return pl.pallas_call(
        functools.partial(body, **options), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(x)


@functools.partial(jax.jit, static_argnames=("factor",))
def jitted(x, factor):
    return pl.pallas_call(
        functools.partial(body, factor=factor), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(x)


@jax.custom_vjp
def custom(x):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def custom_forward(x):
    return custom(x), x.shape


def custom_backward(shape, gradient):
    return (pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(shape, "float32"))(gradient),)


custom.defvjp(custom_forward, custom_backward)


def tree(operands, lengths):
    (x, y), z = operands["pair"], operands["one"]
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, y.dtype))(x + y + z)


def make(factor):
    def run(x):
        return pl.pallas_call(
            functools.partial(body, factor=factor), out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
        )(x)

    return run


@dataclasses.dataclass
class Config:
    factor: int


def configured(x, config):
    return pl.pallas_call(
        functools.partial(body, factor=config.factor),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)


class Module:
    factor = 3

    def method(self, x):
        return pl.pallas_call(
            functools.partial(body, factor=self.factor),
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        )(x)

    @staticmethod
    def static(x):
        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    @classmethod
    def of_class(cls, x):
        kernel = functools.partial(body, factor=cls.factor)
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
