"""Layers made of Pallas kernels."""

from .layers import linear

__all__ = ["linear"]
