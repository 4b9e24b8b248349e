"""`pl.pallas_call` for Mosaic GPU as `plgpu.kernel` with a pipeline of its own.

Until jax 0.11.1 that was what it was lowered to: the parallel axes of the grid became that of the
kernel, and `plgpu.emit_pipeline` ran over the others and copied the blocks
(`lower_pipelined_jaxpr_to_module` in jax/_src/pallas/mosaic_gpu/lowering.py).
"""
