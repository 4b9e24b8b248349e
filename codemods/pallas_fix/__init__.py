"""Codemods that repair JAX Pallas kernels and verify each rewrite on the kernel itself."""

__version__ = "0.1.0"
