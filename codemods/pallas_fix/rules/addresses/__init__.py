"""MXU001: accumulators that are named by address, and the refs that take their place.

`pltpu.matmul_acc_lhs(acc_addr, lhs, mxu_index, load_staged_rhs)` and `pltpu.matmul_pop(acc_addr,
shape, dtype, mxu_index)` of jax 0.9.1 to 0.11.1 (jax/_src/pallas/mosaic/primitives.py).
"""
