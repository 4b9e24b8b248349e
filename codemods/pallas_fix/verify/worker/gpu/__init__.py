"""GPU kernels on the CPU: Mosaic GPU and Triton, interpreted by jax."""
