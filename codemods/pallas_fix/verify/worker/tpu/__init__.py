"""Runs TPU kernels on the CPU: a model of the MXU, and what lets jax's interpreter use it."""
