"""Captures the launches of a command: it is loaded into every Python process that one starts.

A process that never imports `jax.experimental.pallas` gets no more of it than a hook: until then
nothing here imports jax.
"""
